// What happened to a run on its way.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/recorded_run.h"

namespace olmo::report {

/// Of a mark whose run tells tokens and no steps.
inline constexpr std::int64_t kUnknownStep = -1;

/// A marked event of one side.
struct Mark {
  char side = 'A';
  std::int64_t step = 0, tokens = 0;
  std::string kind;  ///< spike, restart, gap, skipped, diverged
  std::string text;
};

/// Spikes, restarts, gaps and errors of one run, by step.
std::vector<Mark> marks_of(const store::RecordedRun& run, char side);

}  // namespace olmo::report
