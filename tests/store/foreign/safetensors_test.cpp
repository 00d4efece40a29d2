#include "store/foreign/safetensors.h"

#include <fstream>
#include <sstream>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "core/error.h"
#include "core/files/json.h"
#include "core/files/output_file.h"
#include "support/catch.h"
#include "support/flips.h"
#include "support/temporary_directory.h"

namespace olmo::store {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

const fs::path kReference = OLMO_TEST_DATA "/store/reference.safetensors";

using Folder = olmo::test::TemporaryDirectory;

std::string length_prefix(std::uint64_t length) {
  std::string bytes;
  for (unsigned shift = 0; shift < 64; shift += 8)
    bytes += static_cast<char>(length >> shift & 0xFFU);
  return bytes;
}

std::string file_of(const std::string& header, std::size_t data_bytes) {
  return length_prefix(header.size()) + header + std::string(data_bytes, '\x11');
}

std::string entry(const char* name, const char* dtype, const char* shape, const char* offsets) {
  std::ostringstream text;
  text << '"' << name << R"(":{"dtype":")" << dtype << R"(","shape":)" << shape
       << R"(,"data_offsets":)" << offsets << '}';
  return text.str();
}

std::string braced(const std::string& entries) {
  std::string text = "{";
  text += entries;
  text += "}";
  return text;
}

// Without the fsync of write_file_atomically: the damage tests write thousands of files.
void put(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// Opens `bytes` as a file; returns the message of the Error(kDamaged) that must follow.
std::string damage(const std::string& bytes) {
  const Folder folder;
  put(folder / "x.safetensors", bytes);
  try {
    const SafetensorsFile file(folder / "x.safetensors");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kDamaged);
    CHECK_THAT(error.what(), Contains("x.safetensors"));
    return error.what();
  }
  FAIL("expected an error");
  return "";
}

NamedTensors some_tensors() {
  return {{"b", at::arange(12, at::kFloat).reshape({3, 4})},
          {"a.weight", at::arange(5, at::kLong)},
          {"quote\"and\\slash", at::full({2}, 0.5, at::kBFloat16)},
          {"none", at::zeros({0, 3})},
          {"one", at::scalar_tensor(2.0, at::kDouble)}};
}

}  // namespace

TEST_CASE("a file of the safetensors library is read in every dtype", "[store]") {
  const SafetensorsFile file(kReference);
  CHECK(file.metadata().at("format") == "pt");
  const at::Tensor expected = ((at::arange(35, at::kDouble) - 3) * 0.375).reshape({5, 7});
  for (const char* name : {"f64.weight", "f32.weight", "f16.weight", "bf16.weight"}) {
    CHECK(at::equal(file.tensor(name).to(at::kDouble), expected));
  }
  for (const char* name : {"i64.weight", "i32.weight", "i16.weight", "i8.weight"}) {
    CHECK(at::equal(file.tensor(name).to(at::kLong),
                    at::arange(-3, 3, at::kLong).reshape({1, 2, 3})));
  }
  CHECK(at::equal(file.tensor("u8.weight").to(at::kLong),
                  at::arange(6, at::kLong).reshape({1, 2, 3})));
  CHECK(file.tensor("scalar").dim() == 0);
  CHECK(file.tensor("scalar").item<float>() == 1.5F);
  CHECK(file.tensor("empty").sizes() == at::IntArrayRef({0, 4}));
}

TEST_CASE("what is written is byte for byte what the safetensors library writes", "[store]") {
  const Folder folder;
  const SafetensorsFile file(kReference);
  NamedTensors tensors;
  for (const TensorEntry& one : file.entries())
    tensors.push_back({one.name, file.tensor(one.name)});
  write_safetensors(folder / "again.safetensors", tensors, file.metadata());
  CHECK(read_file(folder / "again.safetensors") == read_file(kReference));
}

TEST_CASE("tensors, names, order and metadata survive a round trip", "[store]") {
  const Folder folder;
  const SafetensorsMetadata metadata = {{"step", "12"}, {"note", "tab\tand \"quotes\""}};
  write_safetensors(folder / "x.safetensors", some_tensors(), metadata);
  const SafetensorsFile read(folder / "x.safetensors");
  CHECK(read.metadata() == metadata);
  const NamedTensors written = some_tensors();
  REQUIRE(read.entries().size() == written.size());
  for (std::size_t i = 0; i < written.size(); ++i) {
    CHECK(read.entries()[i].name == written[i].name);
    const at::Tensor tensor = read.tensor(written[i].name);
    CHECK(tensor.scalar_type() == written[i].tensor.scalar_type());
    CHECK(tensor.sizes() == written[i].tensor.sizes());
    CHECK(at::equal(tensor, written[i].tensor));
  }
}

TEST_CASE("writing leaves no temporary file, and replaces the old file as a whole", "[store]") {
  const Folder folder;
  write_safetensors(folder / "x.safetensors", some_tensors());
  write_safetensors(folder / "x.safetensors", {{"only", at::zeros({1})}});
  CHECK(SafetensorsFile(folder / "x.safetensors").entries().size() == 1);
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1);
  CHECK_THROWS_AS(write_safetensors(folder / "absent/x.safetensors", some_tensors()), Error);
}

TEST_CASE("a file cut short anywhere is refused", "[store]") {
  const std::string whole = read_file(kReference);
  for (std::size_t size = 0; size < whole.size(); size += 37) {
    CHECK_FALSE(damage(whole.substr(0, size)).empty());
  }
  CHECK_THAT(damage(whole.substr(0, whole.size() - 1)), Contains("outside the file's"));
  CHECK_THAT(damage(whole + "x"), Contains("1 bytes at the end"));
}

TEST_CASE("a header of impossible length or contents is refused", "[store]") {
  CHECK_THAT(damage(length_prefix(UINT64_MAX) + "{}"), Contains("does not fit"));
  CHECK_THAT(damage(length_prefix(std::uint64_t{1} << 63U) + "{}"), Contains("does not fit"));
  CHECK_THAT(damage(length_prefix(3) + "{}"), Contains("does not fit"));
  CHECK_THAT(damage(file_of("", 0)), Contains("does not begin"));
  CHECK_THAT(damage(file_of("[]", 0)), Contains("does not begin"));
  CHECK_THAT(damage(file_of("{", 0)), Contains("not valid JSON"));
  CHECK_THAT(damage(file_of("{\"a\xff\":1}", 0)), Contains("not valid JSON"));
  CHECK_THAT(damage(file_of("{\"a\":" + std::string(100'000, '['), 0)),
             Contains("nested too deep"));
  CHECK_THAT(damage(file_of("{\"a\":1}", 0)), Contains("expected dtype, shape and data_offsets"));
  CHECK_THAT(damage(file_of("{\"__metadata__\":{\"a\":1}}", 0)), Contains("is not a string"));
  CHECK_THAT(damage(file_of("{\"__metadata__\":[]}", 0)), Contains("not an object"));
}

TEST_CASE("a tensor that does not fit its bytes is refused by name", "[store]") {
  const auto one = [](const char* dtype, const char* shape, const char* offsets) {
    return damage(file_of(braced(entry("w", dtype, shape, offsets)), 8));
  };
  CHECK_THAT(one("F33", "[2]", "[0,8]"), Contains("tensor w: unknown dtype F33"));
  CHECK_THAT(one("F32", "[3]", "[0,8]"), Contains("need 12 bytes, its data_offsets give 8"));
  CHECK_THAT(one("F32", "[2]", "[0,9]"), Contains("outside"));
  CHECK_THAT(one("F32", "[2]", "[8,0]"), Contains("outside"));
  CHECK_THAT(one("F32", "[1]", "[0,4]"), Contains("4 bytes at the end"));
  CHECK_THAT(one("F32", "[1]", "[4,8]"), Contains("a gap before its bytes"));
  CHECK_THAT(one("F32", "[-2]", "[0,8]"), Contains("whole numbers"));
  CHECK_THAT(one("F32", "[2.0]", "[0,8]"), Contains("whole numbers"));
  CHECK_THAT(one("F32", "2", "[0,8]"), Contains("shape is not a list"));
  CHECK_THAT(one("F32", "[2]", "[0,4,8]"), Contains("data_offsets"));
  CHECK_THAT(one("F32", "[4294967296,4294967296]", "[0,8]"), Contains("beyond any memory"));
  CHECK_THAT(one("F32", "[0,4294967296,4294967296]", "[0,0]"), Contains("beyond any memory"));
  CHECK_THAT(one("F32", "[18446744073709551615]", "[0,8]"), Contains("beyond any memory"));
  CHECK_THAT(one("F32", "[99999999999999999999]", "[0,8]"), Contains("whole numbers"));
}

TEST_CASE("a name of two lines is told in one", "[store]") {
  CHECK_THAT(damage(file_of(braced(entry("a\\nb", "F33", "[2]", "[0,8]")), 8)),
             Contains("tensor a b: unknown dtype F33"));
}

TEST_CASE("overlapping and repeated tensors are refused by name", "[store]") {
  const std::string first = entry("a", "F32", "[2]", "[0,8]");
  CHECK_THAT(damage(file_of(braced(first + "," + entry("b", "F32", "[2]", "[4,12]")), 12)),
             Contains("tensor b: its bytes overlap"));
  CHECK_THAT(damage(file_of(braced(first + "," + entry("b", "F32", "[2]", "[0,8]")), 8)),
             Contains("tensor b: its bytes overlap"));
  CHECK_THAT(damage(file_of(braced(first + "," + first), 8)), Contains("has the key \"a\" twice"));
  CHECK_THAT(
      damage(file_of(
          "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"I32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8)),
      Contains("has the key \"dtype\" twice"));
}

TEST_CASE("a tensor that is absent is refused by name", "[store]") {
  const SafetensorsFile file(kReference);
  CHECK_THROWS_WITH(file.tensor("nobody"), Contains("has no tensor nobody"));
  CHECK_THROWS_AS(SafetensorsFile("/no/such/file.safetensors"), Error);
}

TEST_CASE("random flips in a file give its tensors or an error, never a crash", "[store]") {
  const Folder folder;
  test::Flips flips(read_file(kReference), 0, 1000);
  int refused = 0;
  constexpr int kRounds = 1500;
  for (int round = 0; round < kRounds; ++round) {
    put(folder / "x.safetensors", flips.next(3));
    try {
      const SafetensorsFile file(folder / "x.safetensors");
      for (const auto& entry : file.entries()) static_cast<void>(file.tensor(entry.name));
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kDamaged);
      ++refused;
    }
  }
  CHECK(refused > kRounds / 2);
}

}  // namespace olmo::store
