#include "fuzz/target.h"

#include <fstream>
#include <stdexcept>

#include <unistd.h>

#include "core/error.h"
#include "core/files/input_file.h"

namespace olmo::fuzz {
namespace {

namespace fs = std::filesystem;

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

}  // namespace

std::vector<Target> all_targets() {
  std::vector<Target> targets;
  for (const auto& room :
       {data_targets(), store_targets(), eval_targets(), train_targets(), record_targets()})
    targets.insert(targets.end(), room.begin(), room.end());
  return targets;
}

void take(const Target& target, const std::string& input) {
  try {
    target.parse(input);
  } catch (const Error& error) {
    if (error.what()[0] == 0) throw std::logic_error("an error without a sentence");
  }
}

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
