#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "report/stats/interval.h"

// The statistics of right and wrong answers that two runs A and B gave to the same instances. A
// difference is always B minus A, as a fraction (0.01 is one percentage point).

namespace olmo::report {

/// The 2×2 table of one task.
struct PairedCounts {
  std::int64_t both_right = 0;
  std::int64_t only_a_right = 0;
  std::int64_t only_b_right = 0;
  std::int64_t both_wrong = 0;

  [[nodiscard]] std::int64_t total() const {
    return both_right + only_a_right + only_b_right + both_wrong;
  }
  [[nodiscard]] std::int64_t discordant() const { return only_a_right + only_b_right; }
  /// Instances that B gained, net.
  [[nodiscard]] std::int64_t net() const { return only_b_right - only_a_right; }
};

/// Accuracy of B minus accuracy of A. This and all below throw Error(kInput) for a table without
/// instances or with a negative count.
double accuracy_difference(const PairedCounts& counts);

/// Exact conditional McNemar test, mid-p version, two-sided (Fagerland, Lydersen and Laake, "The
/// McNemar test for binary matched-pairs data", BMC Med. Res. Methodol. 2013): the p-value of "both
/// runs are right equally often". 1 without a discordant pair.
double mcnemar_mid_p(const PairedCounts& counts);

/// Tango's z ("Equivalence test and confidence interval for the difference in proportions for the
/// paired-sample design", Stat. Med. 1998): the score statistic of "the difference is `delta`",
/// with the nuisance parameter at its maximum likelihood under that hypothesis. |delta| <= 1.
double tango_z(const PairedCounts& counts, double delta);

/// The interval of the report: Tango's, and where the net gain is 0 or points towards a limit, at
/// least Clopper and Pearson's limit of the net gain. Score limits are too near when only a handful
/// of pairs is discordant: without any, Tango's 95 % one-sided limit is 2.7/n, but a true
/// difference of that size leaves no trace in 6.7 % of samples; the exact limit is 3.0/n.
Interval paired_interval(const PairedCounts& counts, double level);

/// Equivalence within ±margin, the p-value and the interval being those of paired_interval. Throws
/// Error(kUsage) unless 0 < margin < 1.
Equivalence paired_equivalence(const PairedCounts& counts, double margin);

/// Interval of the mean of the tasks' differences, each task weighing the same: Zou and Donner's
/// MOVER ("Construction of confidence limits about effect measures", Stat. Med. 2008) over the
/// tasks' paired_intervals. Unlike a bootstrap it has a width where no pair is discordant.
Interval macro_interval(std::span<const PairedCounts> tasks, double level);

/// Equivalence of the macro average by macro_interval.
Equivalence macro_equivalence(std::span<const PairedCounts> tasks, double margin);

// How much a paired comparison of n instances can show, by the normal approximation of a paired
// difference whose variance is d/n, d being the share of instances that exactly one run gets right
// (Julious, "Sample sizes for clinical trials with normal data", Stat. Med. 2004, with d for the
// variance). Shares and margins are fractions. Throws Error(kUsage) unless n >= 1 and 0 <= d <= 1.

/// The probability that paired_equivalence certifies ±margin when the runs do not differ: exactly,
/// over all tables.
double paired_power(double d, std::int64_t n, double margin);

/// For the macro average of tasks, one d and n each, that do not differ: what macro_equivalence
/// `excludes` in each of 2,000 tables drawn at random, ascending. The share below a margin is the
/// power, to 1.1 percentage points (one standard error) at worst; the kPower quantile is the margin
/// that is certified with that power.
std::vector<double> macro_limits(std::span<const double> d, std::span<const std::int64_t> n);

/// The number of instances from which on paired_equivalence certifies `margin`, 0 < margin < 1,
/// with probability kPower when the runs do not differ. The smallest margin that n instances
/// certify so is (z(1 - kAlpha) + z((1 + kPower)/2)) · sqrt(d/n), 2.926 · sqrt(d/n); but not below
/// 1 - kAlpha^(1/n), about 3/n, which is what n instances without any discordance certify.
std::int64_t instances_to_certify(double d, double margin);

/// The smallest difference that a two-sided test at kAlpha finds with probability kPower:
/// (z(1 - kAlpha/2) + z(kPower)) · sqrt(d/n), 2.802 · sqrt(d/n).
double detectable_difference(double d, std::int64_t n);

}  // namespace olmo::report
