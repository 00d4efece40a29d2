#pragma once

#include "report/recorded_run.h"

namespace olmo::report {

/// Calls `visit` with the indices of each step that both runs have, until it returns false.
template <class Visit>
void for_common_steps(const StepColumns& a, const StepColumns& b, Visit visit) {
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a.step[i] == b.step[j]) {
      if (!visit(i, j)) return;
      ++i, ++j;
    } else if (a.step[i] < b.step[j]) {
      ++i;
    } else {
      ++j;
    }
  }
}

}  // namespace olmo::report
