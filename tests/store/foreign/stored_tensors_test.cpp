#include "store/foreign/stored_tensors.h"

#include <ATen/ATen.h>

#include "core/error.h"
#include "store/foreign/safetensors.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace olmo::store {
namespace {

using Catch::Matchers::Contains;

/// A file whose tensors are shards of a tensor `x`.
class ShardFile : public SafetensorsFile {
 public:
  ShardFile(const std::filesystem::path& path, const ShardPlace& place) : SafetensorsFile(path) {
    std::vector<TensorEntry> shards = entries();
    for (TensorEntry& shard : shards) {
      shard.name = "x";
      shard.shard_of = place;
    }
    set_entries(std::move(shards));
  }
};

/// The ranks' files.
class Ranks {
 public:
  void add(const at::Tensor& values, std::int64_t begin, std::vector<std::int64_t> shape = {2, 3}) {
    const auto path = folder_ / (std::to_string(files_.size()) + ".safetensors");
    write_safetensors(path, {{"values", values}});
    files_.push_back(ShardFile(path, {std::move(shape), begin}));
  }
  StoredTensors open() { return {std::move(files_), "step8"}; }

 private:
  test::TemporaryDirectory folder_;
  std::vector<TensorFile> files_;
};

/// Of 2 x 3.
at::Tensor whole() { return at::arange(6, at::kFloat).reshape({2, 3}); }
at::Tensor values(std::int64_t begin, std::int64_t end) {
  return whole().flatten().slice(0, begin, end).contiguous();
}

}  // namespace

TEST_CASE("shards in any order make their tensor", "[store]") {
  Ranks ranks;
  ranks.add(values(4, 6), 4);
  ranks.add(values(0, 0), 0);  // a rank that has none of it
  ranks.add(values(0, 4), 0);
  const StoredTensors stored = ranks.open();
  REQUIRE(stored.tensors().size() == 1);
  CHECK(stored.tensors()[0].name == "x");
  CHECK(stored.tensors()[0].shape == std::vector<std::int64_t>{2, 3});
  CHECK(stored.tensors()[0].parts.size() == 2);
  CHECK(at::equal(read_tensor(stored.tensors()[0]), whole()));
}

TEST_CASE("of ranks that hold the same values one is read", "[store]") {
  Ranks ranks;
  for (int replica = 0; replica < 2; ++replica) {
    ranks.add(values(0, 3), 0);
    ranks.add(values(3, 6), 3);
  }
  const StoredTensors stored = ranks.open();
  CHECK(stored.tensors()[0].parts.size() == 2);
  CHECK(at::equal(read_tensor(stored.tensors()[0]), whole()));
}

TEST_CASE("shards that do not make a tensor are told by its name", "[store]") {
  Ranks ranks;
  ranks.add(values(0, 2), 0);
  const auto refused = [&](const std::string& says) {
    CHECK_THROWS_WITH(ranks.open(), Contains("step8: tensor x: ") && Contains(says));
  };
  SECTION("values at the end are missing") {
    refused("its values 2 to 5 are in none of the files: is the file of a rank missing?");
  }
  SECTION("values between are missing") {
    ranks.add(values(4, 6), 4);
    refused("its values 2 to 3 are in none of the files");
  }
  SECTION("values are there twice") {
    ranks.add(values(1, 6), 1);
    refused("1.safetensors overlaps another, or is too long");
  }
  SECTION("there are more values than it has") {
    ranks.add(at::zeros({5}), 2);
    refused("1.safetensors overlaps another, or is too long");
  }
  SECTION("a shard is of another shape") {
    ranks.add(values(2, 6), 2, {3, 2});
    refused("has another shape or dtype in ");
  }
  SECTION("a shard is of another dtype") {
    ranks.add(values(2, 6).to(at::kBFloat16), 2);
    refused("has another shape or dtype in ");
  }
}

TEST_CASE("a shard of a tensor that no memory holds is refused", "[store]") {
  constexpr std::int64_t kMuch = std::int64_t{1} << 40;
  Ranks ranks;
  ranks.add(values(0, 2), 0, {kMuch, kMuch});
  CHECK_THROWS_WITH(ranks.open(), Contains("tensor x: its shape is beyond any memory"));
}

TEST_CASE("tensors are named anew, or passed over", "[store]") {
  const test::TemporaryDirectory folder;
  write_safetensors(folder / "x.safetensors", {{"model.a", whole()}, {"step", at::zeros({})}});
  std::vector<TensorFile> files;
  files.push_back(SafetensorsFile(folder / "x.safetensors"));
  const StoredTensors stored(std::move(files), "x",
                             [](const std::string& name) -> std::optional<std::string> {
                               if (!name.starts_with("model.")) return std::nullopt;
                               return name.substr(6);
                             });
  REQUIRE(stored.tensors().size() == 1);
  CHECK(stored.tensors()[0].name == "a");
}

}  // namespace olmo::store
