#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include <unistd.h>

#include "core/error.h"
#include "core/files/input_file.h"
#include "core/hash.h"
#include "fuzz/target.h"

namespace olmo::fuzz {
namespace {

namespace fs = std::filesystem;

const Target* chosen = nullptr;

/// Removed when the process ends.
struct Scratch {
  fs::path path =
      (fs::is_directory("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path()) /
      ("olmo-fuzz-" + std::to_string(::getpid()));
  Scratch() { fs::create_directories(path); }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

std::vector<Target> all_targets() {
  std::vector<Target> targets;
  for (const auto& room :
       {data_targets(), store_targets(), eval_targets(), train_targets(), record_targets()})
    targets.insert(targets.end(), room.begin(), room.end());
  return targets;
}

}  // namespace

const fs::path& scratch_folder() {
  static const Scratch kScratch;
  return kScratch.path;
}

fs::path file_of(const std::string& input, const std::string& name) {
  fs::path path = scratch_folder() / name;
  std::ofstream(path, std::ios::binary | std::ios::trunc) << input;
  return path;
}

std::vector<std::string> files_below(const std::string& folder, const std::string& ending) {
  std::vector<std::string> contents;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(OLMO_SOURCE_DIR) / folder)) {
    if (entry.is_regular_file() && entry.path().string().ends_with(ending))
      contents.push_back(olmo::read_file(entry.path()));
  }
  return contents;
}

}  // namespace olmo::fuzz

using namespace olmo::fuzz;

// NOLINTBEGIN(readability-identifier-naming): libFuzzer calls these.

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  static const auto kTargets = all_targets();
  if (*argc == 2 && std::strcmp((*argv)[1], "--list") == 0) {
    for (const auto& target : kTargets) std::puts(target.name);
    std::exit(0);
  }
  if (*argc < 3) {
    std::fprintf(stderr, "usage: olmo_fuzz --list | TARGET CORPUS [libFuzzer's options]\n");
    std::exit(2);
  }
  for (const auto& target : kTargets)
    if (std::strcmp(target.name, (*argv)[1]) == 0) chosen = &target;
  if (chosen == nullptr) {
    std::fprintf(stderr, "olmo_fuzz: no target '%s' (olmo_fuzz --list)\n", (*argv)[1]);
    std::exit(2);
  }
  const std::filesystem::path corpus = (*argv)[2];
  std::filesystem::create_directories(corpus);
  for (const auto& seed : chosen->seeds()) {
    if (seed.size() > chosen->longest) continue;
    std::ofstream(corpus / ("seed-" + olmo::sha256(seed).hex().substr(0, 16)), std::ios::binary)
        << seed;
  }
  static std::string longest = "-max_len=" + std::to_string(chosen->longest);
  (*argv)[1] = longest.data();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    chosen->parse(std::string(reinterpret_cast<const char*>(data), size));
  } catch (const olmo::Error& error) {
    // A sentence is what a user sees: never empty.
    if (error.what()[0] == 0) std::abort();
  }
  return 0;
}
// NOLINTEND(readability-identifier-naming)
