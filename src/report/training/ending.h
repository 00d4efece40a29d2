// How the two runs ended, as far as a verdict on their common steps needs it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/record/side.h"

namespace olmo::report {

/// One side diverged in a step that the other trained: whatever the steps before it tell, the two
/// models differ. Nothing where neither did, and where both did in the same step. (Where steps have
/// other sizes, it is the tokens seen that count.)
std::optional<std::string> diverged_alone(const Side& a, const Side& b);

/// What a reader must know of a side that is no finished training, unless diverged_alone() says it:
/// one sentence each.
std::vector<std::string> caveats_of_ends(const Side& a, const Side& b);

/// Why equivalence of the common steps is none of the runs: a side diverged, and the other has not
/// come so far.
std::optional<std::string> cap_of_ends(const Side& a, const Side& b);

}  // namespace olmo::report
