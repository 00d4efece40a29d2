#pragma once

#include <cstdint>
#include <span>

#include "report/stats/bootstrap.h"
#include "report/stats/interval.h"

// One number for each of several runs on either side, e.g. the final loss of every seed. Values
// that are not finite and empty sides throw Error(kInput).

namespace olmo::report {

/// Standard deviation with n - 1. Throws Error(kInput) for fewer than two values.
double sample_standard_deviation(std::span<const double> values);

struct PermutationTest {
  double difference = 0;  ///< mean of B minus mean of A
  double p = 1;           ///< two-sided
  double minimum_p = 1;   ///< the smallest p that so few runs could give
  bool exact = true;      ///< all relabellings were counted, not a sample of them
};

/// Label permutation test (Fisher) of "the runs of A and B are draws of one population": the share
/// of all ways to call |A| of the runs "A" whose means differ at least as much. With K runs on both
/// sides the smallest possible p is 2/C(2K, K), as each relabelling has a mirror image: 0.1 for K =
/// 3, 0.029 for K = 4, 0.008 for K = 5. Above 24 runs in all, `options.resamples` random
/// relabellings, counted with the observed one (Phipson and Smyth 2010).
PermutationTest permutation_test(std::span<const double> a, std::span<const double> b,
                                 const BootstrapOptions& options = {});

/// Equivalence of the means by Welch's t interval (unequal variances, Welch-Satterthwaite degrees
/// of freedom). At least two runs on either side, else Error(kInput).
Equivalence welch_equivalence(std::span<const double> a, std::span<const double> b, double margin,
                              double alpha = kAlpha);

}  // namespace olmo::report
