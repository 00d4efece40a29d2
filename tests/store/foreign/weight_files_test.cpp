#include "store/foreign/weight_files.h"

#include <fstream>

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

namespace fs = std::filesystem;
using Catch::Matchers::Contains;
using Folder = olmo::test::TemporaryDirectory;

const fs::path kTorch = OLMO_TEST_DATA "/train/hf/torch";

}  // namespace

TEST_CASE("a sharded folder is read through its index", "[store]") {
  const Folder folder;
  write_safetensors(folder / "model-1.safetensors", {{"a", at::ones({2})}});
  write_safetensors(folder / "model-2.safetensors", {{"b", at::ones({3})}, {"c", at::ones({4})}});
  const auto index = [&](const Json& map) {
    write_file_atomically(folder / "model.safetensors.index.json",
                          Json({{"weight_map", map}}).dump());
  };
  index({{"a", "model-1.safetensors"}, {"b", "model-2.safetensors"}, {"c", "model-2.safetensors"}});
  const auto stored = open_weights(folder.path());
  REQUIRE(stored.files().size() == 2);
  CHECK(stored.files()[0].entries()[0].name == "a");
  CHECK(stored.files()[1].entries()[1].name == "c");
  CHECK(stored.tensors().size() == 3);
  SECTION("an index that forgets a tensor is refused") {
    index({{"a", "model-1.safetensors"}, {"b", "model-2.safetensors"}});
    CHECK_THROWS_WITH(open_weights(folder.path()), Contains("tensor c is in model-2"));
  }
  SECTION("an index that invents a tensor is refused") {
    index({{"a", "model-1.safetensors"},
           {"b", "model-2.safetensors"},
           {"c", "model-2.safetensors"},
           {"d", "model-2.safetensors"}});
    CHECK_THROWS_WITH(open_weights(folder.path()), Contains("names 4 tensors"));
  }
  SECTION("a shard outside the folder is refused") {
    index({{"a", "../model-1.safetensors"}});
    CHECK_THROWS_WITH(open_weights(folder.path()), Contains("of the same folder"));
  }
  SECTION("a shard that is not there is a bad input") {
    index({{"a", "model-3.safetensors"}});
    CHECK_THROWS_WITH(open_weights(folder.path()), Contains("model-3.safetensors"));
  }
  SECTION("an index of another shape is refused") {
    write_file_atomically(folder / "model.safetensors.index.json", "[1]");
    CHECK_THROWS_WITH(open_weights(folder.path()), Contains("weight_map"));
  }
}

TEST_CASE("shards of torch.save are read through their index", "[store]") {
  const auto stored = open_weights(kTorch / "pytorch_model.bin.index.json");
  REQUIRE(stored.files().size() == 2);
  CHECK(stored.files()[0].map().path().filename() == "pytorch_model-00001-of-00002.bin");
  CHECK(stored.files()[0].entries().size() == 3);
}

TEST_CASE("of a folder's weights safetensors are read, else torch's, else OLMo's shards",
          "[store]") {
  const Folder folder;
  const auto opened = [&] {
    const auto stored = open_weights(folder.path());
    return stored.files().front().map().path().filename();
  };
  fs::copy(OLMO_TEST_DATA "/train/olmo_shards/torch_legacy", folder.path());
  CHECK(opened() == "rank0.pt");
  for (const char* name : {"pytorch_model.bin", "model.pt"}) {
    fs::copy_file(kTorch / "model.pt", folder / name);
    CHECK(opened() == name);
  }
  write_safetensors(folder / "model.safetensors", {{"a", at::ones({2})}});
  CHECK(opened() == "model.safetensors");
}

}  // namespace olmo::store
