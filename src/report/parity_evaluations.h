// What a parity report says of scores.
#pragma once

#include "report/evaluations/evaluation_groups.h"
#include "report/parity.h"

namespace olmo::report {

/// Chooses the evaluations that are compared.
void choose_evaluations(ParityReport& report, const SideRecords& a, const SideRecords& b,
                        const ParityOptions& options);

/// The scores of all finished evaluations of both sides. Those that were altered are damage.
void add_scores(ParityReport& report, const SideRecords& a, const SideRecords& b);

/// The evaluations of the compared step, of the compared runs and of those that count as repeats.
EvaluatedRuns evaluated_runs(ParityReport& report, const SideRecords& a, const SideRecords& b);

/// The tests of the chosen evaluations, of those of `runs`, and of the steps before.
void compare_evaluations(ParityReport& report, const SideRecords& a, const SideRecords& b,
                         const EvaluatedRuns& runs);

}  // namespace olmo::report
