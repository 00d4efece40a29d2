#include "train/shared_inputs.h"

#include <atomic>
#include <cmath>
#include <fstream>
#include <numeric>

#include "core/error.h"
#include "dist/thread_ranks.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace olmo::train {
namespace {

namespace fs = std::filesystem;

/// Five files, of which each has one byte more than the one before.
std::vector<InputFile> write_files(const fs::path& folder, char letter) {
  fs::create_directories(folder);
  std::vector<InputFile> files;
  for (std::size_t i = 0; i < 5; ++i) {
    files.push_back({"tokens", folder / std::to_string(i)});
    std::ofstream(files.back().path) << std::string(i + 1, letter);
  }
  return files;
}

bool same(const std::vector<store::InputRecord>& a, const std::vector<store::InputRecord>& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.kind == y.kind && x.path == y.path && x.bytes == y.bytes && x.sha256 == y.sha256;
  });
}

}  // namespace

TEST_CASE("ranks that share the hashing of files have the digests of one process", "[train]") {
  const test::TemporaryDirectory folder;
  const auto files = write_files(folder / "a", 'a'), others = write_files(folder / "b", 'b');
  std::atomic<int> right{0};
  dist::run_ranks(4, [&](dist::Communicator& ranks) {
    const auto& mine = ranks.rank() == 2 ? others : files;  // as on a disk of another machine
    if (same(describe_shared_inputs(ranks, mine), describe_inputs(mine))) ++right;
  });
  CHECK(right == 4);
}

TEST_CASE("each file is hashed by one of the ranks that see it, and each has its share",
          "[train]") {
  const std::vector<std::string> keys = {"here", "there", "here", "here", "there"};
  std::vector<std::uint64_t> sizes(100);
  std::iota(sizes.begin(), sizes.end(), 0);
  for (const auto& of_one : {std::vector{0, 2, 3}, std::vector{1, 4}}) {
    std::vector<std::uint64_t> bytes(keys.size());
    const auto readers = readers_of(of_one.front(), keys, sizes);
    for (const int rank : of_one) CHECK(readers_of(rank, keys, sizes) == readers);
    for (std::size_t i = 0; i < sizes.size(); ++i)
      bytes[static_cast<std::size_t>(readers[i])] += sizes[i];
    for (const int rank : of_one) {
      const auto share = 4950.0 / static_cast<double>(of_one.size());
      CHECK(std::abs(static_cast<double>(bytes[static_cast<std::size_t>(rank)]) - share) < 100);
    }
  }
}

TEST_CASE("files of other names with the same content are the same, and others are named",
          "[train]") {
  const test::TemporaryDirectory folder;
  const auto files = write_files(folder / "a", 'a');
  auto renamed = files;
  for (auto& file : renamed) {
    const fs::path to = folder / ("other " + file.path.filename().string());
    fs::copy_file(file.path, to);
    file.path = to;
  }
  std::string said;
  const auto compare = [&] {
    said.clear();
    dist::run_ranks(2, [&](dist::Communicator& ranks) {
      try {
        require_same_files(ranks, ranks.rank() == 1 ? renamed : files);
      } catch (const Error& error) {
        if (ranks.rank() == 0) said = error.what();
      }
    });
    return said;
  };
  CHECK(compare().empty());
  std::ofstream(renamed[2].path) << "bbb";
  CHECK_THAT(compare(), Catch::Matchers::Contains("tokens 2 is 3 bytes, ") &&
                            Catch::Matchers::Contains("(other 2) there and") &&
                            Catch::Matchers::Contains("(2) on rank 0"));
}

TEST_CASE("a file that one rank cannot read fails on all", "[train]") {
  const test::TemporaryDirectory folder;
  const auto files = write_files(folder.path(), 'a');
  auto missing = files;
  missing[3].path = folder / "nothing";
  std::atomic<int> named{0};
  dist::run_ranks(3, [&](dist::Communicator& ranks) {
    try {
      describe_shared_inputs(ranks, ranks.rank() == 1 ? missing : files);
    } catch (const Error& error) {
      const std::string what = error.what();
      if (what.starts_with("rank 1: ") && what.find("nothing") != what.npos) ++named;
    }
  });
  CHECK(named == 3);
}

}  // namespace olmo::train
