// What the tests of tasks share: the invented data sets of tests/data/eval, and definitions in a
// scratch folder.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "core/error.h"
#include "eval/task_catalog.h"
#include "support/temporary_directory.h"

namespace olmo::test {

inline std::filesystem::path task_data() { return std::filesystem::path(OLMO_TEST_DATA) / "eval"; }

inline void write_text(const std::filesystem::path& path, std::string_view text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

inline eval::Task resolve(const eval::TaskCatalog& catalog, const std::string& name,
                          std::string_view convention,
                          const std::filesystem::path& data = task_data()) {
  return catalog.resolve(std::span(&name, 1), convention, data).at(0);
}

/// The sentence of the Error of that kind which `call` throws; empty if it throws none.
template <typename Call>
std::string sentence_of(ErrorKind kind, const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.kind() == kind ? error.what() : "of another kind: " + std::string(error.what());
  }
  return "";
}

}  // namespace olmo::test
