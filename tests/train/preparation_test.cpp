#include "train/preparation.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "core/error.h"
#include "support/catch.h"
#include "support/small_disk.h"
#include "support/temporary_directory.h"

using namespace olmo;
namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kSize = 32ULL << 20;

/// 300 files of 32 MiB, without a block on the disk.
void make_sparse_files(const fs::path& folder) {
  for (int i = 100; i < 400; ++i) {
    const fs::path path = folder / ("part-" + std::to_string(i));
    std::ofstream(path, std::ios::binary).put('a');
    fs::resize_file(path, kSize);
  }
}

void write_at(const fs::path& path, std::uint64_t offset) {
  std::fstream(path, std::ios::binary | std::ios::in | std::ios::out)
      .seekp(static_cast<std::streamoff>(offset))
      .put('b');
}

std::vector<store::InputRecord> described_files(const fs::path& folder) {
  std::vector<train::InputFile> files;
  for (int i = 100; i < 400; ++i)
    files.push_back({"tokens", folder / ("part-" + std::to_string(i))});
  return train::describe_inputs(files);
}

}  // namespace

TEST_CASE("of many large files, size, ends and two places between are hashed, and nothing else",
          "[train]") {
  const test::TemporaryDirectory folder;
  make_sparse_files(folder.path());
  const auto before = described_files(folder.path());
  REQUIRE(before.size() == 300);
  CHECK(before[0].bytes == static_cast<std::int64_t>(kSize));
  CHECK(before[0].sha256.starts_with("sampled-4x64K:"));
  CHECK(before[0].sha256 == before[1].sha256);
  write_at(folder.path() / "part-100", kSize - 1);
  write_at(folder.path() / "part-101", (kSize - 65536) / 3);
  write_at(folder.path() / "part-102", 65536);
  const auto after = described_files(folder.path());
  CHECK(after[0].sha256 != before[0].sha256);
  CHECK(after[1].sha256 != before[1].sha256);
  CHECK(after[2].sha256 == before[2].sha256);
  CHECK(after[0].sha256 != after[1].sha256);
}

TEST_CASE("a file counts once as what it is named for, however often a config names it",
          "[train]") {
  const std::vector<store::InputRecord> inputs = {{"tokens", "/a", 1, "x"},
                                                  {"tokens", "/b", 2, "y"},
                                                  {"tokens", "/a", 1, "x"},
                                                  {"label_mask", "/a", 1, "x"}};
  std::string left;
  for (const auto& input : train::each_once(inputs)) left += input.kind + " " + input.path + ", ";
  CHECK(left == "tokens /a, tokens /b, label_mask /a, ");
}

TEST_CASE(
    "a run folder on a read-only disk is refused with that reason, not for want of permission",
    "[train]") {
  const test::TemporaryDirectory folder;
  const int code = test::with_small_disk(folder.path(), "size=1m", [&] {
    if (::mount("tmpfs", folder.path().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr) != 0)
      return test::kNotPermitted;
    try {
      train::require_writable_folder(folder / "run");
    } catch (const Error& error) {
      const std::string said = error.what();
      return said.ends_with(folder.path().string() + ": Read-only file system") ? 0 : 3;
    }
    return 4;
  });
  if (code == test::kNotPermitted) return;
  CHECK(code == 0);
}
