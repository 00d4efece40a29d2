#include "store/foreign/torch_archive.h"

#include <fstream>

#include "core/error.h"
#include "core/files/input_file.h"
#include "support/catch.h"
#include "support/temporary_directory.h"
#include "support/zip.h"

namespace olmo::store {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

const fs::path kTorch = OLMO_TEST_DATA "/store/torch";
const fs::path kLegacy = OLMO_TEST_DATA "/train/olmo_shards/torch_legacy";

std::vector<TensorEntry> tensors_of(const fs::path& path) {
  const MappedFile file(path);
  return TorchArchive(file, {0, file.bytes().size()}).tensors();
}

}  // namespace

TEST_CASE("an archive in a part of a file is read as one that is a file", "[store]") {
  const test::TemporaryDirectory folder;
  const std::string archive = read_file(kTorch / "views.pt"), around(77, 'x');
  std::ofstream(folder / "x", std::ios::binary) << around << archive << around;
  const MappedFile file(folder / "x");
  const auto inner = TorchArchive(file, {around.size(), archive.size()}).tensors("root");
  const auto outer = tensors_of(kTorch / "views.pt");
  REQUIRE(inner.size() == outer.size());
  for (std::size_t i = 0; i < inner.size(); ++i) {
    CHECK(inner[i].name == "root/" + outer[i].name);
    CHECK(inner[i].offset == outer[i].offset + around.size());
  }
  CHECK_THROWS_WITH(TorchArchive(file, {around.size(), archive.size() - 1}),
                    Contains("the zip file is cut"));
}

TEST_CASE("tensors that have attributes are read", "[store]") {
  const auto tensors = tensors_of(kTorch / "attributes.pt");
  REQUIRE(tensors.size() == 2);
  CHECK(tensors[0].name == "tensor");
  CHECK(tensors[0].shape == std::vector<std::int64_t>{12});
  CHECK(tensors[1].name == "parameter");
  CHECK(tensors[1].shape == std::vector<std::int64_t>{2});
}

TEST_CASE("of a ShardedTensor the rank's rows are read, and where they lie", "[store]") {
  std::int64_t next = 0;
  for (const char* rank : {"rank0.pt", "rank1.pt", "rank2.pt"}) {
    for (const auto& entry : tensors_of(kLegacy / rank)) {
      if (entry.name != "model/transformer.blocks.0.att_proj.weight") continue;
      REQUIRE(entry.shard_of);
      CHECK(entry.shard_of->shape == std::vector<std::int64_t>{48, 16});
      CHECK(entry.shard_of->begin == next);
      next += entry.shape.at(0) * 16;
    }
  }
  CHECK(next == 48 * 16);
}

TEST_CASE("a ShardedTensor that does not say where it lies is refused by name", "[store]") {
  const test::TemporaryDirectory folder;
  const MappedFile file(kLegacy / "rank0.pt");
  const auto refused = [&](const std::string& text, const std::string& by, const char* says) {
    std::vector<std::pair<std::string, std::string>> records;
    for (const auto& [name, record] : read_zip_directory(file, {0, file.bytes().size()})) {
      records.emplace_back(name, read_zip_record(file, name, record));
      auto& bytes = records.back().second;
      if (!name.ends_with("/data.pkl")) continue;
      REQUIRE(bytes.find(text) != std::string::npos);
      bytes.replace(bytes.find(text), text.size(), by);
    }
    test::write_zip(folder / "x.pt", records, ZIP_CM_STORE);
    CHECK_THROWS_WITH(tensors_of(folder / "x.pt"),
                      Contains("x.pt: tensor model/transformer.wte.weight: ") && Contains(says));
  };
  refused("shard_offsets", "shard_offsetz", "has a shard that does not say where it lies");
  refused("metadata", "metadatz", "has a shard that does not say where it lies");
  refused("ShardedTensor\n", "ShardedTensoz\n", "is made by _rebuild_from_type_v2");
}

}  // namespace olmo::store
