#include "core/files/zip_directory.h"

#include <fstream>

#include "core/error.h"
#include "support/catch.h"
#include "support/flips.h"
#include "support/temporary_directory.h"
#include "support/zip.h"

namespace olmo {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

// The torch library's own.
const fs::path kTorchFile = OLMO_TEST_DATA "/store/torch/reference.pt";

std::map<std::string, std::string> records_of(const fs::path& path) {
  const MappedFile file(path);
  std::map<std::string, std::string> texts;
  for (const auto& [name, record] : read_zip_directory(file, {0, file.bytes().size()}))
    texts[name] = read_zip_record(file, name, record);
  return texts;
}

/// Records of `bytes` as a file; the message of the Error(kDamaged) that must follow.
std::string damage(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
  try {
    records_of(path);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kDamaged);
    CHECK_THAT(error.what(), Contains(path.filename()));
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("the records of a zip file are read where they lie", "[core]") {
  const test::TemporaryDirectory folder;
  test::write_zip(folder / "x.zip", {{"a", "1"}, {"b/c", ""}, {"d", "0123"}});
  CHECK(records_of(folder / "x.zip") ==
        std::map<std::string, std::string>{{"a", "1"}, {"b/c", ""}, {"d", "0123"}});
  const auto saved = records_of(kTorchFile);
  CHECK(saved.at("reference/byteorder") == "little");
  CHECK(saved.at("reference/data.pkl").ends_with("."));
}

TEST_CASE("zip64 records are read", "[core]") {
  const test::TemporaryDirectory folder;
  // Offsets, sizes and the directory's place in their 64-bit forms.
  const auto number = [](std::uint64_t value, std::size_t bytes) {
    std::string text;
    for (; bytes > 0; --bytes, value >>= 8U) text += static_cast<char>(value & 0xFFU);
    return text;
  };
  const std::string all_ones(4, '\xff'), junk = "junk";
  const std::string local =
      "PK\x03\x04" + std::string(26 - 4, '\0') + number(1, 2) + number(0, 2) + "a" + "12345";
  const std::string extra = number(7, 2) + number(2, 2) + "xx" + number(1, 2) + number(24, 2) +
                            number(5, 8) + number(5, 8) + number(junk.size(), 8);
  const std::string entry = "PK\x01\x02" + std::string(16, '\0') + all_ones + all_ones +
                            number(1, 2) + number(extra.size(), 2) + std::string(10, '\0') +
                            all_ones + "a" + extra;
  const std::uint64_t directory = junk.size() + local.size(), end64 = directory + entry.size();
  const std::string file = junk + local + entry + "PK\x06\x06" + std::string(28, '\0') +
                           number(1, 8) + number(entry.size(), 8) + number(directory, 8) +
                           "PK\x06\x07" + std::string(4, '\0') + number(end64, 8) + number(1, 4) +
                           "PK\x05\x06" + std::string(4, '\0') + number(0xFFFF, 2) +
                           number(0xFFFF, 2) + all_ones + all_ones + number(0, 2);
  CHECK(damage(folder / "x.zip", file).empty());
  CHECK(records_of(folder / "x.zip") == std::map<std::string, std::string>{{"a", "12345"}});
}

TEST_CASE("a zip file that is cut anywhere is refused", "[core]") {
  const test::TemporaryDirectory folder;
  const std::string whole = read_file(kTorchFile);
  for (std::size_t size = 0; size < whole.size(); size += 13)
    CHECK_THAT(damage(folder / "x.pt", whole.substr(0, size)), Contains("is cut"));
}

TEST_CASE("records that are not stored as they are, or changed, are refused by name", "[core]") {
  const test::TemporaryDirectory folder;
  test::write_zip(folder / "packed.zip", {{"a", std::string(1000, 'x')}});
  CHECK_THAT(damage(folder / "packed.zip", read_file(folder / "packed.zip")),
             Contains("a record a that is compressed"));
  test::write_zip(folder / "x.zip", {{"a", "1"}, {"d", "0123"}});
  std::string bytes = read_file(folder / "x.zip");
  bytes[bytes.find("0123")] = 'o';
  CHECK_THAT(damage(folder / "x.zip", bytes), Contains("the bytes of d in the zip file do not"));
}

TEST_CASE("random flips in a zip file give records or an error, never a crash", "[core]") {
  const test::TemporaryDirectory folder;
  const std::string whole = read_file(kTorchFile);
  test::Flips flips(whole, whole.size() - 1500, whole.size());  // the directory lies at the end
  int refused = 0;
  constexpr int kRounds = 500;
  for (int round = 0; round < kRounds; ++round)
    refused += damage(folder / "x.pt", flips.next()).empty() ? 0 : 1;
  CHECK(refused > kRounds / 3);
}

}  // namespace olmo
