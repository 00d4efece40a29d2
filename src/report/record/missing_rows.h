// Rows that a training records whatever happens, and that its record lacks.
#pragma once

#include <string>
#include <vector>

#include "store/database/record_database.h"
#include "store/runs/recorded_run.h"

namespace olmo::report {

/// One sentence each, without its full stop: attempts and audits, that are numbered; token files,
/// ranks, traces, hashes of states and evaluations that the run's config and steps tell were
/// recorded; events of an attempt's start, end and checkpoints, and what they tell of. What a kill
/// may have cost is not expected, nor what a later attempt was told to record, as the config is the
/// first one's. Nothing of a log, and of an older format of the record.
std::vector<std::string> missing_rows(const store::RecordDatabase& records,
                                      const store::RecordedRun& run);

}  // namespace olmo::report
