// What can be had of an evaluation from its record, without data and model.
#pragma once

#include <string>
#include <vector>

#include "evaluation/evaluation.h"

namespace olmo::evaluation {

/// Tasks from the text of what to_json() recorded: their names, metrics and primary metrics, not
/// their data. Throws Error(kDamaged) for text of another form.
std::vector<eval::Task> recorded_tasks(const std::string& settings);

/// The numbers of a recorded evaluation, made again from its rows.
EvaluationOutcome rescore(const store::EvaluationDb& record, const std::string& evaluation_id);

}  // namespace olmo::evaluation
