// The prose of a claim.
#pragma once

#include <string>

#include "report/decide.h"

namespace olmo::report {

/// A sentence that may be quoted: the claim, the test that decided it with its numbers, and what
/// true difference that excludes. Without its full stop.
std::string sentence_of(const Claim& claim, const Conditions& conditions);
/// What would make the claim stronger, and what to run; empty: nothing.
std::string what_makes_stronger(const Claim& claim, const Conditions& conditions);

}  // namespace olmo::report
