// What a parity report holds differences against.
#pragma once

#include "report/evaluations/evaluation_groups.h"
#include "report/parity.h"

namespace olmo::report {

/// Before anything is tested against one: margins depend on declarations and repeats alone.
void set_margins(ParityReport& report, const SideRecords& a, const SideRecords& b,
                 const EvaluatedRuns& runs, const ParityOptions& options);

/// Tests of the setups that have no repeats, with the deviations that the file at `path` publishes.
void add_published(ParityReport& report, const std::string& path);

}  // namespace olmo::report
