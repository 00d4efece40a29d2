#include "store/foreign/tensor_file.h"

#include <fstream>

#include <ATen/ATen.h>

#include "core/error.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace olmo::store {
namespace {

using Catch::Matchers::Contains;

/// Whatever it is told.
class AnyFile : public TensorFile {
 public:
  AnyFile(const std::filesystem::path& path, std::vector<TensorEntry> entries) : TensorFile(path) {
    set_entries(std::move(entries));
  }
};

}  // namespace

TEST_CASE("tensors of a file are given in the order of their bytes", "[store]") {
  const test::TemporaryDirectory folder;
  std::ofstream(folder / "x") << "0123456789";
  const AnyFile file(folder / "x",
                     {{.name = "b", .dtype = "U8", .shape = {3}, .offset = 5, .bytes = 3},
                      {.name = "a", .dtype = "I16", .shape = {}, .offset = 1, .bytes = 2}});
  CHECK(file.entries().front().name == "a");
  CHECK(file.tensor("a").item<std::int16_t>() == 0x3231);
  CHECK(at::equal(file.tensor("b"), at::arange(0x35, 0x38, at::kByte)));
}

TEST_CASE("bytes that do not have their checksum are refused by the tensor's name", "[store]") {
  const test::TemporaryDirectory folder;
  std::ofstream(folder / "x") << "0123456789";
  const auto file_with = [&](std::uint32_t crc32) {
    return AnyFile(folder / "x",
                   {{.name = "a", .dtype = "U8", .shape = {10}, .bytes = 10, .crc32 = crc32}});
  };
  CHECK(file_with(0xA684C7C6).tensor("a").numel() == 10);  // zlib's crc32 of the ten digits
  CHECK_THROWS_WITH(file_with(0xA684C7C7).tensor("a"),
                    Contains("x: tensor a: its bytes do not have the checksum"));
}

TEST_CASE("a file with two tensors of one name is refused", "[store]") {
  const test::TemporaryDirectory folder;
  std::ofstream(folder / "x") << "0123456789";
  const TensorEntry entry{.name = "a", .dtype = "U8", .shape = {3}, .bytes = 3};
  CHECK_THROWS_WITH(AnyFile(folder / "x", {entry, entry}), Contains("tensor a is there twice"));
}

TEST_CASE("the size of a tensor is its shape's, or refused", "[store]") {
  const TensorDtype& f32 = *find_tensor_dtype("F32");
  const auto bytes = [&](const std::vector<std::uint64_t>& shape) {
    return checked_tensor_bytes("x", f32, shape);
  };
  CHECK(bytes({}) == 4);
  CHECK(bytes({2, 3}) == 24);
  CHECK(bytes({2, 0}) == 0);
  CHECK_THROWS_WITH(bytes({std::uint64_t{1} << 40, std::uint64_t{1} << 40}),
                    Contains("beyond any memory"));
  CHECK_THROWS_WITH(bytes({std::uint64_t{1} << 62, 0}), Contains("beyond any memory"));
  CHECK_THROWS_WITH(bytes(std::vector<std::uint64_t>(65, 1)), Contains("64 dimensions"));
  CHECK(find_tensor_dtype("F31") == nullptr);
}

TEST_CASE("a shard's place is told for rows that lie one after the other", "[store]") {
  using Sizes = std::vector<std::int64_t>;
  const auto begin = [](const Sizes& shape, const Sizes& offsets, const Sizes& sizes) {
    const auto place = shard_place(shape, offsets, sizes);
    return place ? place->begin : -1;
  };
  CHECK(begin({4, 3}, {1, 0}, {2, 3}) == 3);
  CHECK(begin({4, 3}, {1, 1}, {1, 2}) == 4);  // of one row
  CHECK(begin({2, 4, 3}, {1, 2, 0}, {1, 2, 3}) == 18);
  CHECK(begin({7}, {2}, {5}) == 2);
  CHECK(begin({}, {}, {}) == 0);
  CHECK(begin({4, 3}, {4, 0}, {0, 3}) == 12);
  CHECK(begin({4, 3}, {1, 0}, {2, 2}) == -1);  // between two rows lies another value
  CHECK(begin({4, 3}, {3, 0}, {2, 3}) == -1);
  CHECK(begin({4, 3}, {-1, 0}, {2, 3}) == -1);
  CHECK(begin({4, 3}, {1}, {2, 3}) == -1);
  constexpr std::int64_t kMost = INT64_MAX;
  CHECK(begin({kMost, kMost, 0}, {kMost, kMost, 0}, {0, 0, 0}) == -1);
}

}  // namespace olmo::store
