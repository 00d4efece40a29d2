#include "store/foreign/dcp_files.h"

#include <fstream>

#include <ATen/ATen.h>

#include "core/error.h"
#include "core/files/input_file.h"
#include "support/catch.h"
#include "support/flips.h"
#include "support/read_entries.h"
#include "support/temporary_directory.h"

namespace olmo::store {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

const fs::path kSaved = OLMO_TEST_DATA "/train/olmo_shards/torch_new/model_and_optim";

/// A copy of it.
class Copy {
 public:
  Copy() { fs::copy(kSaved, folder_.path()); }

  [[nodiscard]] const fs::path& path() const { return folder_.path(); }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  /// Replaces a text in .metadata by another one, which is as long.
  void replace(const std::string& text, const std::string& by) const {
    std::string bytes = read_file(folder_ / kDcpMetadata);
    REQUIRE(text.size() == by.size());
    REQUIRE(bytes.find(text) != std::string::npos);
    bytes.replace(bytes.find(text), text.size(), by);
    write(kDcpMetadata, bytes);
  }

 private:
  test::TemporaryDirectory folder_;
};

}  // namespace

TEST_CASE("each shard is where .metadata tells, with its checksum", "[store]") {
  std::int64_t next = 0;
  for (const auto& file : open_dcp(kSaved)) {
    for (const auto& entry : file.entries()) {
      if (entry.name != "model.transformer.blocks.0.att_proj.weight") continue;
      CHECK(entry.shard_of->shape == std::vector<std::int64_t>{48, 16});
      CHECK(entry.shard_of->begin == next);
      CHECK(entry.crc32);
      next += entry.shape.at(0) * 16;
    }
  }
  CHECK(next == 48 * 16);
}

TEST_CASE("of tensors that are not asked for no shard is looked at", "[store]") {
  const Copy copy;
  for (const char* rank : {"__0_0.distcp", "__1_0.distcp", "__2_0.distcp"}) copy.write(rank, "");
  CHECK(open_dcp(copy.path(), "nothing.").empty());
  CHECK_THROWS_WITH(open_dcp(copy.path(), "optim.state."), Contains("it is cut"));
}

TEST_CASE("files that do not fit their .metadata are refused by name", "[store]") {
  const Copy copy;
  const auto refused = [&](const std::string& says) {
    CHECK_THROWS_WITH(open_dcp(copy.path()), Contains(says));
  };
  SECTION("a file is cut") {
    const std::string bytes = read_file(copy.path() / "__2_0.distcp");
    copy.write("__2_0.distcp", bytes.substr(0, bytes.size() - 1));
    refused("lies beyond the end of the file: it is cut");
  }
  SECTION("a file is outside of the folder") {
    copy.replace("__0_0.distcp", "../0_0.distc");
    refused("expected a file of the same folder, got ../0_0.distc");
  }
  SECTION("a file is not there") {
    copy.replace("__0_0.distcp", "__7_0.distcp");
    refused("__7_0.distcp");
  }
  SECTION("an attribute is missing") {
    copy.replace("relative_path", "relative_pith");
    refused(".metadata: tells of a tensor without `relative_path`");
  }
  SECTION(".metadata is another file") {
    copy.write(kDcpMetadata, "\x80\x02}.");
    refused(".metadata: holds no storage_data");
  }
  SECTION("there is no .metadata") {
    fs::remove(copy.path() / kDcpMetadata);
    refused(".metadata");
  }
}

TEST_CASE("random flips in .metadata give its tensors or an error, never a crash", "[store]") {
  const Copy copy;
  test::Flips flips(read_file(kSaved / kDcpMetadata));
  int refused = 0;
  constexpr int kRounds = 400;
  for (int round = 0; round < kRounds; ++round) {
    copy.write(kDcpMetadata, flips.next(4));
    try {
      for (const auto& file : open_dcp(copy.path())) test::read_entries(file);
    } catch (const Error&) {
      ++refused;
    }
  }
  CHECK(refused > kRounds / 3);
}

}  // namespace olmo::store
