// Log-likelihoods that two evaluations gave to the same options.
#pragma once

#include <cstdint>
#include <vector>

#include "core/compute/policy.h"
#include "report/claims/claim.h"
#include "report/evaluations/evaluation_match.h"

namespace olmo::report {

/// Differences of the options' log-likelihoods, B minus A (Bland and Altman 1986).
struct ScoreAgreement {
  std::int64_t options = 0;
  std::int64_t equal_bits = 0;
  double mean = 0, standard_deviation = 0;
  double low = 0, high = 0;  ///< limits of agreement: mean ± 1.96 standard deviations
  double median = 0, quantile999 = 0, largest = 0;  ///< of |difference|
  /// Mean over the instances of the Kullback-Leibler divergence between the options' normalized
  /// probabilities, nats, averaged over both directions.
  double divergence = 0;
};
ScoreAgreement score_agreement(const TaskPair& task);

/// What rounding alone does to log-likelihoods, relative to their size |l|.
struct NumericNoise {
  Precision precision;
  double floor;  ///< mean shift, relative to the mean |l|: rounding may be biased so much
  double mean;   ///< mean shift, relative: the margin
  double absolute, relative;  ///< of one option, nats: absolute + relative · |l|
  const char* reason;
};
/// fp32 where both evaluations say so, else bf16, as an unknown precision may be that.
const NumericNoise& numeric_noise(const EvaluationData& a, const EvaluationData& b);

/// Two tests of the same weights over the instances of all tasks: the mean shift of the
/// log-likelihoods, of which a large one is a finding even where no choice changed, and the share
/// of instances in which an option moved further than rounding moves it. Empty without instances.
std::vector<Test> score_tests(const std::vector<TaskPair>& tasks, const NumericNoise& noise);

}  // namespace olmo::report
