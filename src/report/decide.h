// The rules in words: README.md beside this file.
#pragma once

#include "report/parity.h"

namespace olmo::report {

/// What a claim is judged with, beside its tests.
struct Conditions {
  Kind kind = Kind::kTrajectory;
  Margins margins = {};
  /// Where the compared curves end, if one side goes on: "up to step 600 (A goes on to step 1000)".
  std::string extent = {};
  std::vector<std::string> caps = {};  ///< why it cannot be more than CONSISTENT; one sentence each
  std::vector<std::string> untested =
      {};  ///< primary endpoints that other claims have and this lacks
};

/// The claim that `tests` support: margins, Holm over the differences, the order of the endpoints,
/// power, the verdict and the test that decided it. No test: nothing is claimed, INCONCLUSIVE.
Claim judge(Scope scope, std::vector<Test> tests, const Conditions& conditions);

/// The claim that gives the verdict: the strongest that holds. A statement about the setups goes
/// before the same about the models, and two models that differ do not stand for setups whose
/// repeats leave it open. Null if there is none.
const Claim* strongest(const std::vector<Claim>& claims);

/// Fills in claims, verdict, reason and caveats from all other parts.
void decide(ParityReport& report);

}  // namespace olmo::report
