// Scores of two sides that should be the same, and are not.
#pragma once

#include <string>
#include <vector>

#include "report/record/side.h"

namespace olmo::report {

struct UnlikeScores {
  /// The first task, by step and name, that both sides evaluated alike and whose scores differ in a
  /// bit: "the scores of arc_easy at step 10"; empty: none.
  std::string first;
  std::vector<std::string> damage_a, damage_b;  ///< of evaluations that were read: sentences
};
/// Of all steps, not only the compared one.
UnlikeScores scores_that_differ(const SideRecords& a, const SideRecords& b);

}  // namespace olmo::report
