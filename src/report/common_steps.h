#pragma once

#include "store/recorded_run.h"

namespace olmo::report {

/// Calls `visit` with the indices of each step that both runs have, until it returns false. Where a
/// side tells tokens and no steps, the tokens are what they have in common.
template <class Visit>
void for_common_steps(const store::StepColumns& a, const store::StepColumns& b, Visit visit) {
  const bool steps = a.steps_known && b.steps_known;
  const auto& in_a = steps ? a.step : a.tokens;
  const auto& in_b = steps ? b.step : b.tokens;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (in_a[i] == in_b[j]) {
      if (!visit(i, j)) return;
      ++i, ++j;
    } else if (in_a[i] < in_b[j]) {
      ++i;
    } else {
      ++j;
    }
  }
}

}  // namespace olmo::report
