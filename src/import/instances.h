// What other evaluators wrote about each instance of a multiple-choice task.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/evaluation_rows.h"

namespace olmo::import {

/// The score by which options are ranked.
enum class ImportMetric {
  kAcc,      ///< the log-probability
  kAccNorm,  ///< per code point of the continuation, its leading space left out (lm-eval)
};

/// A file of instances: lm-eval's `samples_TASK_DATE.jsonl` (--log_samples) or oe-eval's
/// `task-NNN-TASK-predictions.jsonl`.
struct InstanceFile {
  std::string path;
  std::int64_t bytes = 0;
  std::string sha256;
  std::string task;        ///< from the file's name
  std::string convention;  ///< lm-eval, oe
  /// By instance in the order of the file; without ranks. What the file does not tell (tokens,
  /// texts) is 0 or empty.
  std::vector<OptionRow> rows;
  std::int64_t instances = 0;
};

/// Throws Error(kInput) "FILE:LINE: …" for an instance that cannot be understood.
InstanceFile read_instance_file(const std::filesystem::path& path);

/// Fills `rank` and `margin` of all rows by `metric`. Throws Error(kInput) if it needs lengths that
/// the file does not tell.
void rank_instances(InstanceFile& file, ImportMetric metric);

}  // namespace olmo::import
