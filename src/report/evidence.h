// What a report holds, as the plain values that the rules take: tests, caps, caveats.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/decide.h"

namespace olmo::report {

/// The pair: scores of the same weights, the curves of one trajectory, paired instances and
/// documents. Training losses of independent trainings are of other batches and no pair.
std::vector<Test> tests_of_models(const ParityReport& report);

/// Confounds, unknown facts that are not assumed and curves that part cap every claim.
Conditions conditions_of(const ParityReport& report);
/// Names of the deciding endpoints of `models` that `setups` has no test of.
std::vector<std::string> primary_missing(const std::vector<Test>& models,
                                         const std::vector<Test>& setups);
void add_caveats(ParityReport& report);

/// What is equal bit for bit, and how much of it; nothing where a bit that both sides recorded
/// differs, or none was recorded.
std::optional<std::string> identical_sentence(const ParityReport& report);

}  // namespace olmo::report
