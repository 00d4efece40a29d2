// How far a long computation is: who computes says it, and ProgressLine shows it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace olmo {

/// A part of a line of progress. Where the terminal is too narrow for all, the parts of the highest
/// rank are left out first.
struct ProgressPart {
  std::string text;
  int rank = 0;
};

struct Progress {
  std::string what;                         ///< is being done: a task's name, "step 3/20"
  double fraction = 0;                      ///< of it is done; one that falls begins another part
  std::optional<std::int64_t> tokens = {};  ///< computed so far, where the line is to show the rate
  std::vector<ProgressPart> facts = {};     ///< shown behind `what`
  bool last = false;                        ///< shown even if it comes soon after the one before
};

/// Called on the thread that computes; may throw to end the computation. May be empty.
using OnProgress = std::function<void(const Progress&)>;

}  // namespace olmo
