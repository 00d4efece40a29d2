// Parsers that are given any bytes. `olmo_fuzz TARGET CORPUS [libFuzzer's options]` puts the
// target's seeds into the folder CORPUS and mutates what lies there; scripts/fuzz.sh runs all
// targets. Every run of the tests gives them their seeds, and some mutations (targets_test.cpp).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace olmo::fuzz {

struct Target {
  const char* name;
  std::size_t longest;  ///< bytes of an input
  /// Parses one input. May throw Error; anything else, and any finding of a sanitizer, is a bug.
  void (*parse)(const std::string& input);
  std::vector<std::string> (*seeds)();
};

std::vector<Target> data_targets();
std::vector<Target> store_targets();
std::vector<Target> eval_targets();
std::vector<Target> train_targets();
std::vector<Target> record_targets();
std::vector<Target> all_targets();

/// Parses `input`. Throws std::logic_error where parsing ends in an Error that says nothing: a user
/// would see an empty line.
void take(const Target& target, const std::string& input);

/// A file of this process that holds `input`, in memory where the system has /dev/shm; the next
/// call with this name replaces it.
std::filesystem::path file_of(const std::string& input, const std::string& name);
/// The process's own folder for file_of.
const std::filesystem::path& scratch_folder();
/// The contents of files below tests/data (or of another folder of the project) with such an
/// ending.
std::vector<std::string> files_below(const std::string& folder, const std::string& ending);

}  // namespace olmo::fuzz
