#include "data/token_file.h"

#include <random>
#include <vector>

#include "data/scratch.h"
#include "support/catch.h"

using namespace olmo::data;
using olmo::ErrorKind;
using olmo::test::padded;
using olmo::test::ScratchFolder;
using olmo::test::thrown_by;

namespace {

/// The error of opening `bytes` as a token file.
olmo::test::Thrown refusal(std::string_view bytes, TokenDtype dtype,
                           std::string_view sidecar = "") {
  const ScratchFolder folder;
  const auto path = folder.write("bad.npy", bytes);
  if (!sidecar.empty()) folder.write("bad.npy.json", sidecar);
  const auto error = thrown_by([&] { TokenFile(path, dtype); });
  REQUIRE(error);
  CHECK(error->kind == ErrorKind::kInput);
  CHECK(error->says("bad.npy"));
  return *error;
}

}  // namespace

TEST_CASE("a raw file gives its ids back in both dtypes", "[data]") {
  const ScratchFolder folder;
  const std::vector<std::uint16_t> narrow = {0, 1, 50279, 65535};
  const TokenFile file(folder.write_ids("a.npy", narrow), TokenDtype::kUint16);
  std::vector<std::int64_t> ids(3);
  file.read(1, std::span<std::int64_t>(ids));
  CHECK(file.size() == 4);
  CHECK(ids == std::vector<std::int64_t>{1, 50279, 65535});
  const TokenFile wide(folder.write_ids("b.npy", std::vector<std::uint32_t>{7, 100277}),
                       TokenDtype::kUint32);
  CHECK(wide.at(1) == 100277);
}

TEST_CASE("an empty token file is refused", "[data]") {
  CHECK(refusal("", TokenDtype::kUint16).says("is empty"));
}

TEST_CASE("a file with NumPy's header is refused with the way to repair it", "[data]") {
  CHECK(
      refusal("\x93NUMPY\x01...........", TokenDtype::kUint16).says(".astype(\"uint16\").tofile("));
}

TEST_CASE("a file of odd size is refused", "[data]") {
  CHECK(refusal("abc", TokenDtype::kUint16).says("3 bytes"));
  CHECK(refusal("abcdef", TokenDtype::kUint32).says("not a whole number of uint32"));
}

TEST_CASE("a sidecar that states another dtype is believed over the config", "[data]") {
  CHECK(refusal("abcd", TokenDtype::kUint16, R"({"dtype": "uint32", "tokens": 1})")
            .says("says dtype uint32"));
}

TEST_CASE("ids of uint32 that would pass for uint16, half of them zeros, are refused", "[data]") {
  const ScratchFolder folder;
  std::mt19937 random(3);
  for (const std::uint32_t vocabulary : {500U, 50280U, 100278U}) {
    std::vector<std::uint32_t> ids(3000);
    for (auto& id : ids) id = static_cast<std::uint32_t>(random() % vocabulary);
    const auto path = folder.write_ids("wide.npy", ids);
    const auto error = thrown_by([&] { TokenFile(path, TokenDtype::kUint16); });
    REQUIRE(error);
    CHECK(error->kind == ErrorKind::kInput);
    CHECK(error->says("memmap_dtype=uint32"));
    CHECK_NOTHROW(TokenFile(path, TokenDtype::kUint32));
  }
  // What pads a file, or has few ids, is no evidence.
  CHECK_NOTHROW(TokenFile(folder.write_ids("padded.npy", std::vector<std::uint16_t>(5000, 1)),
                          TokenDtype::kUint16));
  std::vector<std::uint16_t> bits(5000);
  for (auto& id : bits) id = static_cast<std::uint16_t>(random() % 2);
  CHECK_NOTHROW(TokenFile(folder.write_ids("bits.npy", bits), TokenDtype::kUint16));
}

TEST_CASE("numbers of another dtype are refused by what they show of it", "[data]") {
  std::mt19937 random(5);
  std::vector<std::uint16_t> narrow(3000), swapped(3000);
  std::vector<std::uint32_t> wide(3000);
  std::vector<std::uint64_t> widest(3000);
  std::vector<float> floats(3000);
  for (std::size_t i = 0; i < narrow.size(); ++i) {
    narrow[i] = static_cast<std::uint16_t>(random() % 50280);
    swapped[i] = static_cast<std::uint16_t>(narrow[i] << 8 | narrow[i] >> 8);
    wide[i] = static_cast<std::uint32_t>(random() % 100278);
    widest[i] = wide[i];
    floats[i] = static_cast<float>(narrow[i] % 500);
  }
  const auto check = [](const auto& numbers, TokenDtype dtype, const char* says) {
    const auto bytes = std::as_bytes(std::span(numbers));
    const auto error = refusal({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, dtype);
    INFO(error.text);
    CHECK(error.says(says));
  };
  check(swapped, TokenDtype::kUint16, "big-endian");
  for (auto& id : swapped) id = static_cast<std::uint16_t>(id & 0xFF01U);  // a vocabulary of 512
  check(swapped, TokenDtype::kUint16, "big-endian");
  check(swapped, TokenDtype::kUint32, "no ids");
  check(narrow, TokenDtype::kUint32, "memmap_dtype=uint16");
  check(widest, TokenDtype::kUint32, "64 bits");
  check(widest, TokenDtype::kUint16, "64 bits");
  check(floats, TokenDtype::kUint32, "no ids");
  check(floats, TokenDtype::kUint16, "floating-point or big-endian numbers of 32 bits");
  auto cut = std::string(reinterpret_cast<const char*>(wide.data()), wide.size() * 4 - 2);
  CHECK(refusal(cut, TokenDtype::kUint16).says("memmap_dtype=uint32"));
  CHECK(refusal(cut, TokenDtype::kUint32).says("it was cut"));
}

TEST_CASE("a sidecar that states another length shows that the file was cut", "[data]") {
  CHECK(refusal("abcd", TokenDtype::kUint16, R"({"dtype": "uint16", "tokens": 3})")
            .says("says 3 tokens"));
}

TEST_CASE("ids that were cut off within a page while the file was in use are not read as zeros",
          "[data]") {
  const ScratchFolder folder;
  for (const auto dtype : {TokenDtype::kUint16, TokenDtype::kUint32}) {
    const auto path = folder.write("cut.npy", std::string(600, '\1'));
    const TokenFile file(path, dtype);
    std::filesystem::resize_file(path, 500);
    std::vector<std::int64_t> ids(5);
    const auto error = thrown_by([&] { file.read(file.size() - ids.size(), ids); });
    REQUIRE(error);
    CHECK(error->kind == ErrorKind::kInput);
    CHECK(error->says("cut.npy: the file was cut while it was in use"));
  }
}

TEST_CASE("a missing token file is an input error that names it", "[data]") {
  const auto error = thrown_by([] { TokenFile("/nonexistent/part.npy", TokenDtype::kUint16); });
  REQUIRE(error);
  CHECK(error->kind == ErrorKind::kInput);
  CHECK(error->says("/nonexistent/part.npy"));
}

TEST_CASE("the first id beyond the vocabulary is found and named with its position", "[data]") {
  const ScratchFolder folder;
  std::vector<std::uint16_t> ids(70000, 9);
  ids[69000] = 50280;
  ids[69001] = 60000;
  const TokenFile file(folder.write_ids("a.npy", ids), TokenDtype::kUint16);
  CHECK(file.find_id_beyond(50280, 0, file.size()) == 69000);
  CHECK(file.find_id_beyond(50280, 0, 69000) == std::nullopt);
  CHECK(file.find_id_beyond(50281, 0, file.size()) == 69001);
  const auto error = thrown_by([&] { file.check_ids_below(50280); });
  REQUIRE(error);
  CHECK((error->kind == ErrorKind::kInput && error->says("a.npy: token 69000 has id 50280")));
}

TEST_CASE("an unknown dtype is a usage error", "[data]") {
  const auto error = thrown_by([] { parse_token_dtype("int64"); });
  REQUIRE(error);
  CHECK((error->kind == ErrorKind::kUsage && error->says("'int64'")));
}

TEST_CASE("uint16 holds a vocabulary of 65536 and no more", "[data]") {
  CHECK(narrowest_dtype(65536) == TokenDtype::kUint16);
  CHECK(narrowest_dtype(65537) == TokenDtype::kUint32);
}

TEST_CASE("text and other programs' files are no token files", "[data]") {
  const std::string lines = R"({"text": "To be, or not to be.", "id": 1})"
                            "\n";
  for (const auto dtype : {TokenDtype::kUint16, TokenDtype::kUint32}) {
    CHECK(refusal(lines, dtype).says("data tokenize"));
    CHECK(refusal(lines + lines + "x", dtype).says("data tokenize"));
    CHECK(refusal("日本語のテキストがここにあります。", dtype).says("data tokenize"));
    CHECK(refusal(padded("caf\xe9 ", 2000, 'x', "au lait"), dtype).says("data tokenize"));
    CHECK(
        refusal(std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10) + "abcdefgh", dtype).says("gzip"));
    CHECK(refusal("\x28\xb5\x2f\xfd....", dtype).says("zstd"));
    CHECK(refusal("PK\x03\x04....", dtype).says("zip archive"));
  }
}

TEST_CASE("no file of token ids is taken for text", "[data]") {
  const ScratchFolder folder;
  std::mt19937 random(7);
  const auto opens = [&](const auto& ids) {
    using Id = typename std::decay_t<decltype(ids)>::value_type;
    const auto dtype = sizeof(Id) == 2 ? TokenDtype::kUint16 : TokenDtype::kUint32;
    return !thrown_by([&] { TokenFile(folder.write_ids("ids.npy", ids), dtype); });
  };
  for (const std::uint32_t vocabulary : {256U, 8192U, 50280U, 65536U}) {
    for (const std::size_t count : {16U, 64U, 3000U}) {
      for (int i = 0; i < 100; ++i) {
        std::vector<std::uint16_t> ids(count);
        for (auto& id : ids) id = static_cast<std::uint16_t>(random() % vocabulary);
        std::vector<std::uint32_t> wide(ids.begin(), ids.end());
        CHECK((opens(ids) && opens(wide)));
      }
    }
  }
  CHECK(opens(std::vector<std::uint16_t>(5000, 0x2020)));            // one id, two spaces as text
  CHECK(opens(std::vector<std::uint16_t>{0x6f54, 0x6220, 0x2c65}));  // "To be,": three ids
}

TEST_CASE("a sidecar that cannot be looked at is not passed over", "[data]") {
  const ScratchFolder folder;
  const auto path = folder.write("a.npy", "abcd");
  std::filesystem::create_symlink("a.npy.json", sidecar_path(path));
  const auto error = thrown_by([&] { TokenFile(path, TokenDtype::kUint16); });
  REQUIRE(error);
  CHECK(error->kind == ErrorKind::kInput);
  CHECK(error->says("a.npy.json: cannot be looked at"));
}

TEST_CASE("a sidecar whose facts have another type is refused", "[data]") {
  for (const char* sidecar :
       {R"({"tokens": "2"})", R"({"tokens": -1})", R"({"tokens": 2.5})", R"({"dtype": 5})",
        R"({"eos_token_id": []})", R"({"eos_token_id": 4294967296})", R"({"sha256": 5})",
        R"({"tokenizer": "x"})", R"({"tokenizer": {"path": 5}})",
        R"({"tokenizer": {"sha256": []}})"})
    CHECK_THAT(refusal("abcd", TokenDtype::kUint16, sidecar).text, Catch::Contains("must be"));
}
