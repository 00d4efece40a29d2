// Tokens of logs that tell steps alone, by their configs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "store/runs/recorded_run.h"

namespace olmo::report {

/// Tokens of a step, as a config in OLMo's keys states them; nothing where it does not.
std::optional<std::int64_t> stated_tokens(const store::RecordedRun& run);

struct AlignedSteps {
  std::string damage, caveat;  ///< one sentence, or none
};
/// Where two logs tell steps alone and their configs batches of other sizes, equal steps are not
/// equal training: each gets the tokens that its config states. `damage` says that one does not.
AlignedSteps align_unlike_steps(store::RecordedRun& a, store::RecordedRun& b);

}  // namespace olmo::report
