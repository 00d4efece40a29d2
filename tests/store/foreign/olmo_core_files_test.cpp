#include "store/foreign/olmo_core_files.h"

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/json.h"
#include "core/files/output_file.h"
#include "store/foreign/safetensors.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace olmo::store {
namespace {

using Catch::Matchers::Contains;

constexpr char kRankFile[] = "rank_0.safetensors";

/// A folder with four values of a tensor of 2 x 3, and a description of it.
class Saved {
 public:
  Saved() { write_safetensors(folder_ / kRankFile, {{"x", at::zeros({4})}}); }

  [[nodiscard]] std::vector<TensorFile> open(const Json& tensors) const {
    write_file_atomically(folder_ / kOlmoCoreMetadata, Json{{"tensors", tensors}}.dump());
    return open_olmo_core(folder_.path());
  }
  [[nodiscard]] std::vector<TensorFile> open_shard(const Json& shard,
                                                   const std::string& tensor = "x",
                                                   const std::string& file = kRankFile,
                                                   const char* key = "shard_spec_per_file") const {
    return open({{tensor, {{"shape", {2, 3}}, {key, {{file, shard}}}}}});
  }
  [[nodiscard]] std::int64_t begin_of(const Json& shard,
                                      const char* key = "shard_spec_per_file") const {
    return open_shard(shard, "x", kRankFile, key).at(0).entries().at(0).shard_of->begin;
  }

 private:
  test::TemporaryDirectory folder_;
};

Json range(int begin, int end) { return Json::array({begin, end}); }

}  // namespace

TEST_CASE("a shard's place is a range of values, or a slab of whole rows", "[store]") {
  const Saved saved;
  const Json ranges = Json::array({range(2, 6)});
  CHECK(saved.begin_of({{"flattened_offsets", ranges}, {"local_shape", nullptr}}) == 2);
  CHECK(saved.begin_of({{"local_shape", {1, 3}}, {"global_offset", {1, 0}}}) == 3);
  // As older versions tell it.
  CHECK(saved.begin_of(ranges, "flattened_offsets_per_file") == 2);
  CHECK(saved.begin_of(range(2, 6), "flattened_offsets_per_file") == 2);
}

TEST_CASE("a metadata.json that tells no place is refused by the tensor's name", "[store]") {
  const Saved saved;
  const auto refused = [&](const Json& shard, const std::string& says) {
    CHECK_THROWS_WITH(saved.open_shard(shard),
                      Contains("metadata.json: tensor x") && Contains(says));
  };
  refused(Json::object(), "has no list `global_offset`");
  refused({{"flattened_offsets", Json::array({1})}}, "has a range of values without begin or end");
  refused({{"flattened_offsets", range(-1, 3)}}, "holds something else than whole numbers");
  refused({{"flattened_offsets", Json::array({range(0, 1), range(3, 4)})}},
          "has a shard of several ranges of values");
  refused({{"local_shape", {2, 2}}, {"global_offset", {0, 0}}}, "is not some of its rows");
  CHECK_THROWS_WITH(saved.open({{"x", {{"shape", {2, 3}}}}}),
                    Contains("tensor x: has no object `shard_spec_per_file`"));
}

TEST_CASE("a metadata.json of other files or tensors is refused", "[store]") {
  const Saved saved;
  const Json shard = {{"flattened_offsets", range(0, 4)}};
  CHECK_THROWS_WITH(saved.open_shard(shard, "x", "../y"),
                    Contains("expected a file of the same folder, got ../y"));
  CHECK_THROWS_WITH(
      saved.open_shard(shard, "y"),
      Contains("rank_0.safetensors: tensor x: metadata.json does not say that it is here"));
  CHECK_THROWS_WITH(saved.open(1), Contains("metadata.json: has no object `tensors`"));
}

}  // namespace olmo::store
