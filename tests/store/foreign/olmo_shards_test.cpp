#include "store/foreign/olmo_shards.h"

#include <map>

#include <ATen/ATen.h>

#include "core/error.h"
#include "store/foreign/safetensors.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace olmo::store {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

// tests/goldens/make_olmo_shards.py: the first folder's tensors, in the second on three ranks.
const fs::path kWhole = OLMO_TEST_DATA "/train/olmo_checkpoint";
const fs::path kShards = OLMO_TEST_DATA "/train/olmo_shards";

/// The tensors of OLMo's safetensors by the keys of their dicts, joined by `/`.
std::map<std::string, at::Tensor> tensors_of(const fs::path& path) {
  const SafetensorsFile file(path);
  std::map<std::string, at::Tensor> tensors;
  for (const auto& entry : file.entries()) {
    std::string name;
    for (const auto& key : decode_olmo_path(entry.name)) name += (name.empty() ? "" : "/") + key;
    if (!name.starts_with("param_groups")) tensors[name] = file.tensor(entry.name);
  }
  return tensors;
}

void check_equal(const StoredTensors& stored, const fs::path& whole) {
  const auto expected = tensors_of(whole);
  CHECK(stored.tensors().size() == expected.size());
  for (const auto& tensor : stored.tensors()) {
    INFO(tensor.name);
    REQUIRE(expected.contains(tensor.name));
    CHECK(at::equal(read_tensor(tensor), expected.at(tensor.name)));
  }
}

}  // namespace

TEST_CASE("what OLMo's trainer saves in shards is its model and its optimizer's state", "[store]") {
  const auto [name, format] = GENERATE(table<const char*, ShardFormat>({
      {"torch_new", ShardFormat::kTorchNew},
      {"torch_legacy", ShardFormat::kTorchLegacy},
      {"local", ShardFormat::kLocal},
      {"olmo_core", ShardFormat::kOlmoCore},
  }));
  INFO(name);
  CHECK(shard_format_of(kShards / name) == format);
  check_equal(open_model_shards(kShards / name, format), kWhole / "model.safetensors");
  check_equal(open_optimizer_shards(kShards / name, format), kWhole / "optim.safetensors");
}

TEST_CASE("flat parameters are cut as torch 2.0 tells, too", "[store]") {
  check_equal(open_model_shards(kShards / "local_2_0", ShardFormat::kLocal),
              kWhole / "model.safetensors");
}

TEST_CASE("the file of a rank that is missing is told", "[store]") {
  const auto [format, file] = GENERATE(table<ShardFormat, const char*>({
      {ShardFormat::kTorchNew, "torch_new/model_and_optim/__1_0.distcp"},
      {ShardFormat::kTorchLegacy, "torch_legacy/rank1.pt"},
      {ShardFormat::kLocal, "local/model/rank1.pt"},
      {ShardFormat::kOlmoCore, "olmo_core/model/rank_1.safetensors"},
  }));
  const test::TemporaryDirectory folder;
  fs::copy(kShards, folder.path(), fs::copy_options::recursive);
  fs::remove(folder / file);
  const fs::path shards = folder / *fs::path(file).begin();
  CHECK(shard_format_of(shards) == format);
  CHECK_THROWS_WITH(open_model_shards(shards, format),
                    Contains("is the file of a rank missing?") || Contains(file));
}

TEST_CASE("a model saved without its optimizer has no state", "[store]") {
  const test::TemporaryDirectory folder;
  const std::string name = GENERATE("local", "olmo_core");
  fs::copy(kShards / name / "model", folder / "model", fs::copy_options::recursive);
  CHECK(open_optimizer_shards(folder.path(), *shard_format_of(folder.path())).tensors().empty());
}

}  // namespace olmo::store
