// Columns of a run's steps that no hash chain is over, and that its config contradicts.
#pragma once

#include <optional>
#include <string>

#include "config/run_columns.h"
#include "store/recorded_run.h"

namespace olmo::report {

/// One sentence without its full stop, of the first step of which the tokens, the learning rate,
/// the limit on the gradients' norm or the share that was clipped is not what the config gives.
/// Nothing where there is none, or where the config does not decide it.
std::optional<std::string> altered_step(const store::RecordedRun& run,
                                        const config::RunColumns& config);

}  // namespace olmo::report
