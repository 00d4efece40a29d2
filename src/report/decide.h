// The rules in words: README.md beside this file.
#pragma once

#include "report/parity.h"

namespace olmo::report {

/// Fills in verdict, reason and caveats from all other parts.
void decide(ParityReport& report);

}  // namespace olmo::report
