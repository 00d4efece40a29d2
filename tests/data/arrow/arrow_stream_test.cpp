#include "data/arrow/arrow_stream.h"

#include <fstream>

#include <nlohmann/json.hpp>

#include "core/files/input_file.h"
#include "data/scratch.h"
#include "support/catch.h"

using namespace olmo::data;
using namespace olmo::test;
using olmo::Json;

namespace {

std::filesystem::path stream_file(const std::string& name) {
  return std::filesystem::path(OLMO_TEST_DATA) / "data" / "arrow" / (name + ".arrow");
}

std::vector<Json> expected_rows() {
  std::vector<Json> rows;
  std::ifstream lines(std::filesystem::path(OLMO_TEST_DATA) / "data" / "arrow" / "types.jsonl");
  for (std::string line; std::getline(lines, line);) rows.push_back(Json::parse(line));
  return rows;
}

std::optional<Thrown> refusal_of(const std::filesystem::path& path,
                                 const std::vector<std::string>& columns = {}) {
  return thrown_by([&] { read_arrow_stream(path, columns); });
}

/// Reads a damaged stream: an error of kind kInput, or rows that can be written.
void read_damaged(const ScratchFolder& folder, const std::string& bytes) {
  const auto path = folder.write("damaged.arrow", bytes);
  const auto refused = thrown_by([&] {
    for (const auto& row : read_arrow_stream(path)) {
      if (row.dump().empty()) FAIL("a row cannot be written");
    }
  });
  if (refused && refused->kind != olmo::ErrorKind::kInput) FAIL(refused->text);
  if (refused && !refused->says("damaged.arrow")) FAIL(refused->text);
}

}  // namespace

TEST_CASE("rows of every type are pyarrow's, nulls and all, over several batches", "[data]") {
  CHECK(read_arrow_stream(stream_file("types")) == expected_rows());
}

TEST_CASE("a stream without rows has none", "[data]") {
  CHECK(read_arrow_stream(stream_file("no_rows")).empty());
}

TEST_CASE("chosen columns are the only ones of a row", "[data]") {
  const auto rows = read_arrow_stream(stream_file("types"), {"i32", "nested"});
  const auto expected = expected_rows();
  REQUIRE(rows.size() == expected.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(rows[i] == Json({{"i32", expected[i]["i32"]}, {"nested", expected[i]["nested"]}}));
  }
  const auto refused = refusal_of(stream_file("types"), {"absent"});
  REQUIRE(refused);
  CHECK(refused->says("has no column `absent`"));
}

TEST_CASE("what an Arrow stream may hold and we do not read is refused by name", "[data]") {
  const auto says = [](const std::string& name, const std::string& part) {
    const auto refused = refusal_of(stream_file(name));
    return refused && refused->kind == olmo::ErrorKind::kInput && refused->says(name) &&
           refused->says(part);
  };
  CHECK(says("dictionary", "column `word` is dictionary-encoded"));
  CHECK(says("compressed", "is compressed"));
  CHECK(says("timestamp", "column `seen` has the type timestamp"));
}

TEST_CASE("files that are no Arrow stream are refused", "[data]") {
  const ScratchFolder folder;
  for (const std::string& bytes :
       {std::string(), std::string("ARROW1\0\0", 8), std::string(64, '\xff'), std::string("{}\n"),
        std::string(8, '\0'), std::string("\xff\xff\xff\xff\xff\xff\xff\x7f")}) {
    const auto refused = refusal_of(folder.write("none.arrow", bytes));
    REQUIRE(refused);
    CHECK(refused->kind == olmo::ErrorKind::kInput);
  }
}

TEST_CASE("a stream cut anywhere is refused", "[data]") {
  const ScratchFolder folder;
  const std::string whole = olmo::read_file(stream_file("types"));
  std::size_t taken = 0;
  for (std::size_t size = 0; size < whole.size() - 4; size += size < 1500 ? 1 : 17) {
    if (!refusal_of(folder.write("cut.arrow", whole.substr(0, size)))) ++taken;
  }
  CHECK(taken == 0);
}

TEST_CASE("a stream with any byte changed gives rows or a sentence", "[data]") {
  const ScratchFolder folder;
  const std::string whole = olmo::read_file(stream_file("types"));
  std::uint32_t random = 1;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    random = random * 1664525 + 1013904223;
    for (const unsigned change : {0x01U, 0xFFU, random >> 24 | 1U}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(static_cast<unsigned char>(damaged[at]) ^ change);
      read_damaged(folder, damaged);
    }
  }
}

TEST_CASE("a stream with several bytes changed gives rows or a sentence", "[data]") {
  const ScratchFolder folder;
  const std::string whole = olmo::read_file(stream_file("types"));
  std::uint32_t random = 7;
  const auto next = [&] { return (random = random * 1664525 + 1013904223) >> 8; };
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = whole;
    for (int change = 0; change < 8; ++change)
      damaged[next() % whole.size()] = static_cast<char>(next());
    read_damaged(folder, damaged);
  }
}
