// Columns of a run's steps that no hash chain is over, and that its config contradicts.
#pragma once

#include <optional>
#include <string>

#include "config/run_columns.h"
#include "store/runs/recorded_run.h"

namespace olmo::report {

/// One sentence without its full stop, of the first step of which the tokens, the epoch, the
/// learning rate, the limit on the gradients' norm, the share that was clipped, the number of
/// masked instances, the loss per label or the tokens per second are not what the config and the
/// step's other columns give. Nothing where there is none, or where these do not decide it.
std::optional<std::string> altered_step(const store::RecordedRun& run,
                                        const config::RunColumns& config);

}  // namespace olmo::report
