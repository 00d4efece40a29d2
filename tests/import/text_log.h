// What the tests of logs that are text share.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "import/steps.h"
#include "support/temporary_directory.h"

namespace olmo::test {

/// A log of the given text, read.
struct Log {
  TemporaryDirectory folder;
  std::filesystem::path path;

  explicit Log(const std::string& text, const std::string& name = "other.log")
      : path(folder / name) {
    std::ofstream(path, std::ios::binary) << text;
  }
  [[nodiscard]] import::StepLog read(const import::StepLogOptions& options = {}) const {
    return import::read_step_log(path, options);
  }
};

inline std::vector<double> losses(const import::StepLog& log) {
  std::vector<double> values;
  for (const auto& row : log.steps) values.push_back(row.loss.value_or(-1));
  return values;
}

inline std::vector<std::int64_t> steps(const import::StepLog& log) {
  std::vector<std::int64_t> values;
  for (const auto& row : log.steps) values.push_back(row.step.value_or(-1));
  return values;
}

}  // namespace olmo::test
