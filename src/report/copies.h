// Two sides of which one is the other, or a copy: that they agree is no evidence.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/parity.h"

namespace olmo::report {

/// One sentence each: one run or evaluation on both sides, also where a copy has another id; one
/// log or file of instances imported for both, logs whose losses are the same numbers throughout.
std::vector<std::string> caveats_of_copies(const ParityReport& report);

/// Why evaluations of the same weights do not compare the two models: runs whose losses differ have
/// no checkpoint in common but the one that both began from, so one model was evaluated for both.
/// As the end of "equivalence is not certified, as".
std::optional<std::string> one_model(const ParityReport& report);

}  // namespace olmo::report
