// The evaluations of one model at one step as one: each `eval` is recorded as an evaluation of its
// own, whatever tasks it asked.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "report/record/side.h"

namespace olmo::report {

/// Finished evaluations of one model at one step (same_model), the latest first.
using EvaluationsOfModel = std::vector<const store::EvaluationEntry*>;

/// Those of a step, the model of the latest one first. `entries`: the oldest first, as a record has
/// them; they have to outlive what is returned.
std::vector<EvaluationsOfModel> by_model(std::optional<std::int64_t> step,
                                         const std::vector<store::EvaluationEntry>& entries);

/// The tasks that `wanted` takes, each of the latest evaluation that has it, with the facts of the
/// latest evaluation; without suites. Evaluations with damage are passed over.
EvaluationData gathered_tasks(const SideRecords& records, const EvaluationsOfModel& model,
                              const std::function<bool(const EvaluatedTask&)>& wanted);

}  // namespace olmo::report
