#include "store/foreign/find_weights.h"

#include <fstream>

#include "support/catch.h"
#include "support/temporary_directory.h"

namespace olmo::store {
namespace {

namespace fs = std::filesystem;
using Folder = olmo::test::TemporaryDirectory;

void make(const fs::path& file) {
  fs::create_directories(file.parent_path());
  const std::ofstream made(file);
}

}  // namespace

TEST_CASE("a file holds weights by its name", "[store]") {
  for (const char* name : {"x.safetensors", "x.pt", "x.pth", "x.bin"}) CHECK(holds_weights(name));
  CHECK_FALSE(holds_weights("checkpoint.h5"));
}

TEST_CASE("a folder holds the weights that come first in the order of formats", "[store]") {
  const Folder folder;
  make(folder / "notes.bin");
  CHECK_FALSE(holds_weights(folder.path()));
  CHECK_FALSE(weights_in(folder.path()));
  for (auto name = kWeightNames.rbegin(); name != kWeightNames.rend(); ++name) {
    make(folder / *name);
    CHECK(weights_in(folder.path()) == folder / *name);
    CHECK(holds_weights(folder.path()));
  }
}

TEST_CASE("shards of OLMo's trainer are told by their files", "[store]") {
  const std::pair<const char*, ShardFormat> kinds[] = {
      {"rank0.pt", ShardFormat::kTorchLegacy},
      {"model/rank0.pt", ShardFormat::kLocal},
      {"model/metadata.json", ShardFormat::kOlmoCore},
      {"model_and_optim/.metadata", ShardFormat::kTorchNew}};
  for (const auto& [file, format] : kinds) {
    const Folder folder;
    CHECK_FALSE(shard_format_of(folder.path()));
    make(folder / file);
    CHECK(shard_format_of(folder.path()) == format);
    CHECK(holds_weights(folder.path()));
  }
}

}  // namespace olmo::store
