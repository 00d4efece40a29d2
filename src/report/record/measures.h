// Seconds, joules, bytes, counts and results of audits that no machine can have told a record.
#pragma once

#include <string>
#include <vector>

#include "store/runs/recorded_run.h"

namespace olmo::report {

/// One sentence each, without its full stop: of energy, ranks, phases and audits the first row with
/// a number that is negative or not finite, or that contradicts the row's others.
std::vector<std::string> impossible_measures(const store::RecordedRun& run);

}  // namespace olmo::report
