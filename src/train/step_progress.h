#pragma once

#include <cstdint>
#include <vector>

#include "core/progress_line.h"
#include "store/run_records.h"

namespace olmo::train {

/// What a person sees while training: the steps on a ProgressLine, with the time that is left.
class StepProgress {
 public:
  StepProgress(std::int64_t first_step, std::int64_t last_step)
      : first_step_(first_step), last_step_(last_step) {}

  void show(const store::StepRecord& row);
  void finish() { line_.finish(); }

 private:
  [[nodiscard]] std::vector<ProgressPart> parts(const store::StepRecord& row) const;

  std::int64_t first_step_;
  std::int64_t last_step_;
  double timed_seconds_ = 0;  ///< of the steps after the first, which warms up
  std::int64_t timed_steps_ = 0;
  ProgressLine line_;
};

}  // namespace olmo::train
