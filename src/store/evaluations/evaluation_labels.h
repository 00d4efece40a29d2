// What people see of a recorded evaluation in place of its id and status.
#pragma once

#include <string>

#include "store/evaluations/evaluation_db.h"

namespace olmo::store {

/// The model: the end of its path, of a checkpoint with the run's folder before it; the
/// evaluation's id where no path is recorded.
std::string model_of(const EvaluationEntry& entry);

/// Of a recorded status: "finished"; what says that it runs may have been killed, which no record
/// shows.
std::string status_text(const std::string& status);

}  // namespace olmo::store
