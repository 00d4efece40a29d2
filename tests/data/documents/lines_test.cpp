#include "data/documents/lines.h"

#include <nlohmann/json.hpp>

#include "data/scratch.h"
#include "support/catch.h"

using namespace olmo::data;
using olmo::ErrorKind;
using olmo::Json;
using olmo::test::ScratchFolder;
using olmo::test::thrown_by;

namespace {

/// "FILE:LINE:bytes" of every line, in the order in which they are stored.
std::vector<std::string> stored(const std::vector<std::filesystem::path>& paths, int threads) {
  LineChunkReader reader(paths);
  std::vector<std::string> lines;
  process_lines<std::vector<std::string>>(
      reader, threads,
      [](const LineChunk& chunk, std::size_t group, std::vector<std::string>& made) {
        made.clear();
        for (std::size_t i = chunk.groups[group].first; i < chunk.groups[group].second; ++i)
          made.push_back(std::to_string(chunk.items[i].source) + ":" +
                         std::to_string(chunk.items[i].line.number) + ":" +
                         chunk.items[i].line.bytes);
      },
      [&](const LineChunk&, std::size_t, const std::vector<std::string>& made) {
        lines.insert(lines.end(), made.begin(), made.end());
      },
      [](const LineChunk&) {});
  return lines;
}

ParsedDocument parsed(std::string bytes) {
  return parse_whole_document({.bytes = std::move(bytes), .number = 1, .too_long = false});
}

}  // namespace

TEST_CASE("lines of several files are stored in their order, on any number of threads", "[data]") {
  const ScratchFolder folder;
  std::string long_lines, short_lines;
  for (int i = 0; i < 40; ++i) long_lines += std::string(300'000 + 7 * i, 'x') + "\n";
  for (int i = 0; i < 90'000; ++i) short_lines += std::to_string(i) + "\n";
  const std::vector<std::filesystem::path> paths = {
      folder.write("a", long_lines), folder.write("b", ""), folder.write("c", short_lines)};
  const auto expected = stored(paths, 1);
  REQUIRE(expected.size() == 90'040);
  CHECK((expected[40] == "2:1:0" && expected.back() == "2:90000:89999"));
  CHECK(stored(paths, 3) == expected);
}

TEST_CASE("a file that cannot be read is told after the lines before it were stored", "[data]") {
  const ScratchFolder folder;
  // The first file fills a chunk, so that the second is opened while its lines are worked on.
  const std::string line(std::size_t{8} << 20, 'x');
  LineChunkReader reader({folder.write("a", line + "\n"), folder / "absent"});
  std::size_t lines = 0;
  const auto error = thrown_by([&] {
    process_lines<int>(
        reader, 1, [](const LineChunk&, std::size_t, int&) {},
        [&](const LineChunk& chunk, std::size_t, int) { lines += chunk.count; },
        [](const LineChunk&) {});
  });
  REQUIRE(error);
  CHECK((error->kind == ErrorKind::kInput && error->says("absent")));
  CHECK(lines == 1);
}

TEST_CASE("a failure of a thread is thrown before anything of its chunk is stored", "[data]") {
  const ScratchFolder folder;
  LineChunkReader reader({folder.write("a", "1\n2\n")});
  bool was_stored = false;
  const auto error = thrown_by([&] {
    process_lines<int>(
        reader, 2,
        [](const LineChunk&, std::size_t, int&) {
          throw olmo::Error(ErrorKind::kInput, "of a thread");
        },
        [&](const LineChunk&, std::size_t, int) { was_stored = true; }, [](const LineChunk&) {});
  });
  REQUIRE(error);
  CHECK(error->says("of a thread"));
  CHECK_FALSE(was_stored);
}

TEST_CASE("a document is parsed with all of its fields, or has a problem in one phrase", "[data]") {
  const auto good = parsed(R"({"text": "x", "id": 7, "metadata": {"a": [1]}})");
  CHECK(good.problem.empty());
  CHECK(*good.document == Json{{"text", "x"}, {"id", 7}, {"metadata", {{"a", {1}}}}});
  CHECK(parsed("{}").problem == "has no field `text`");
  CHECK(parsed(R"({"text": 1})").problem == "has a `text` that is not a string");
  CHECK(parsed("[]").problem == "is not a JSON object");
  CHECK(parsed(R"({"text": "x", "a": {"b": 1, "b": 2}})").problem ==
        "has the key \"b\" twice in one object");
  CHECK(parsed("{\"text\": \"\xff\"}").problem.starts_with("is not valid JSON"));
}

TEST_CASE("bad lines stop at the first with its place, or are all counted", "[data]") {
  BadLines stops(BadLinePolicy::kStop);
  const auto error = thrown_by([&] { stops.add({"a.jsonl", 3, "is not valid JSON"}); });
  REQUIRE(error);
  CHECK((error->kind == ErrorKind::kInput && error->says("a.jsonl:3: the line is not valid JSON")));
  BadLines counts(BadLinePolicy::kSkip);
  for (std::uint64_t i = 1; i <= 150; ++i) counts.add({"a.jsonl", i, "is not valid JSON"});
  CHECK((counts.count() == 150 && counts.first().size() == BadLines::kMaxListed));
  CHECK(to_json(counts)["first"][0] ==
        Json{{"file", "a.jsonl"}, {"line", 1}, {"problem", "is not valid JSON"}});
}
