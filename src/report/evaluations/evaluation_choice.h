// Which of the recorded evaluations of two sides are compared.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/claims/verdict.h"
#include "report/record/side.h"

namespace olmo::report {

struct ChosenEvaluations {
  std::optional<EvaluationData> a, b;  ///< both, or neither
  std::string problem;                 ///< why there are none, if a side has some
  std::vector<std::string> caveats;    ///< what else is recorded of that step: one sentence each
};

/// The pair at the latest step (of batches of other sizes, at equal tokens: evaluation_places.h)
/// that has most tasks in common, then the one computed alike, then with most of them asked alike,
/// among equals the latest. What both sides evaluated of the same weights in other evaluations of
/// that step is added to it; of a task that several hold the one that was asked alike, of the most
/// instances.
ChosenEvaluations choose_evaluations(const Side& a, const SideRecords& in_a, const Side& b,
                                     const SideRecords& in_b, std::optional<Kind> kind);

}  // namespace olmo::report
