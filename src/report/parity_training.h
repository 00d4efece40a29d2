// What a parity report says of two trainings.
#pragma once

#include "report/parity.h"

namespace olmo::report {

/// Curves, repeats and branches of two runs that have steps, and what they tell of settings and
/// data.
void compare_training(ParityReport& report, const SideRecords& a, const SideRecords& b,
                      const ParityOptions& options);

}  // namespace olmo::report
