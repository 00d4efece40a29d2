// More than one evaluation a side: of repeated runs, and of several checkpoints of one run.
#pragma once

#include <optional>
#include <vector>

#include "report/claims/claim.h"
#include "report/record/recorded_evaluation.h"

namespace olmo::report {

/// Evaluations of the compared run (first) and of its repeats.
struct EvaluatedRuns {
  std::vector<EvaluationData> a, b;
};

/// Whether `data` is sound and holds the tasks and instances of `reference`, asked in the same way;
/// costs and suites are not looked at.
bool holds_the_same(const EvaluationData& reference, const EvaluationData& data);

/// The setups' macro average and tasks, over runs and instances (two_level_difference). An
/// evaluation that does not hold the instances of A's first, asked in the same way, is left out.
/// Empty with fewer than two runs on a side.
std::vector<Test> tests_of_repeats(const EvaluatedRuns& runs);
/// Pooled standard deviation of the macro average (of a single task: its accuracy) between the runs
/// of a side, percentage points; absent with fewer than two runs on both.
std::optional<RepeatDeviation> macro_deviation(const EvaluatedRuns& runs);

/// The macro average of the pair over several checkpoints, `a[i]` and `b[i]` being of one step. The
/// differences of one instance are a cluster, as checkpoints of a run answer alike. Reported beside
/// the last checkpoint, which decides. Absent with fewer than two steps.
std::optional<Test> test_of_checkpoints(const EvaluatedRuns& steps);

}  // namespace olmo::report
