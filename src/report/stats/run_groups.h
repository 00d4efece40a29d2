#pragma once

#include <cstdint>
#include <span>
#include <vector>

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

/// The same for pairs (of one seed on both sides, or of branches from one checkpoint): the share of
/// all ways to swap A and B within pairs whose mean difference is at least as large. The smallest
/// p of K pairs is 2/2^K: 0.06 for K = 5, 0.03 for K = 6. Above 20 pairs random swaps.
PermutationTest paired_permutation_test(std::span<const double> differences,
                                        const BootstrapOptions& options = {});

/// Mean of B minus mean of A of unpaired runs, with Welch's standard error (unequal variances) and
/// the degrees of freedom of Welch and Satterthwaite. At least two runs on either side, else
/// Error(kInput).
Estimate welch_difference(std::span<const double> a, std::span<const double> b);

/// Mean of paired differences, with the standard error of the paired t test: what the runs of a
/// pair have in common (the seed, the checkpoint they branch from) drops out. At least two.
Estimate paired_difference(std::span<const double> differences);

/// Mean of differences that belong to clusters: one instance at several checkpoints, questions
/// about one text, runs with several evaluations. Differences within a cluster may be correlated in
/// any way, the sums of clusters are independent (Liang and Zeger, "Longitudinal data analysis
/// using generalized linear models", Biometrika 1986; with G/(G - 1) and G - 1 degrees of freedom
/// for G clusters, Cameron and Miller, "A practitioner's guide to cluster-robust inference", J.
/// Hum. Resour. 2015). `cluster` names each difference's own; at least two clusters, else
/// Error(kInput).
Estimate clustered_difference(std::span<const double> differences,
                              std::span<const std::int64_t> cluster);

/// Scores in [0, 1] of several runs of either side on the same instances of one task:
/// [run][instance].
struct RunScores {
  std::vector<std::vector<double>> a, b;
};

/// Difference of what two setups score on average, over runs and over instances of all tasks, each
/// task weighing the same: runs differ as a whole, over all tasks, and instances react to a setup.
/// Both are random and crossed, so the variance is that between runs plus that between instances
/// minus that of single answers, which both contain (Cameron, Gelbach and Miller, "Robust inference
/// with multiway clustering", J. Bus. Econ. Stat. 2011), and no less than the larger of the two. A
/// task's instances vary by five changes more than are seen, as rare ones may be missing from a
/// sample. Degrees of freedom by Satterthwaite. At least two runs a side, the same ones in each
/// task, and two instances a task, else Error(kInput).
Estimate two_level_difference(std::span<const RunScores> tasks);

/// How many standard deviations between runs a margin from the repeats may be: two, or less where
/// the deviation, which is estimated from the same runs, would else certify a true difference of
/// two true deviations in more than 5 % of samples. Unpaired: the 5 % quantile of the noncentral t
/// distribution (Wellek, "Testing Statistical Hypotheses of Equivalence", 2nd ed. 2010, ch. 6.1):
/// two up to eight runs a side, least at twelve, 1.95. Paired: `error` is the standard error of
/// the mean difference, and the interval of the deviation's own error is subtracted, too.
double margin_deviations(std::int64_t k_a, std::int64_t k_b);
double paired_margin_deviations(std::int64_t pairs, double error, double deviation);

/// Welch's test of K_a and K_b runs with the given standard deviations: the probability that it
/// certifies a true difference `truth` within ±margin, over the distributions of both estimated
/// deviations.
double welch_power(double deviation_a, double deviation_b, std::int64_t k_a, std::int64_t k_b,
                   double margin, double truth = 0);
/// The same where the margin is margin_deviations times the pooled deviation that the runs show,
/// within [smallest, largest]; k runs a side.
double repeats_power(double deviation, std::int64_t k, double smallest, double largest,
                     double truth = 0);

}  // namespace olmo::report
