#pragma once

#include <cstdint>

#include "report/stats/interval.h"

// How much a paired comparison of n instances can show, by the normal approximation of a paired
// difference whose variance is d/n, d being the share of instances that exactly one run gets right
// (Julious, "Sample sizes for clinical trials with normal data", Stat. Med. 2004, with d for the
// variance). Shares and margins are fractions. Throws Error(kUsage) unless n >= 1, 0 <= d <= 1,
// 0 < alpha < 0.5, 0 < power < 1.

namespace olmo::report {

/// The smallest margin that paired_equivalence certifies with probability `power` when the runs do
/// not differ: (z(1 - alpha) + z((1 + power)/2)) · sqrt(d/n), 2.926 · sqrt(d/n) by default; but not
/// below 1 - alpha^(1/n), about 3/n, which is what n instances without any discordance certify.
double certifiable_margin(double d, std::int64_t n, double alpha = kAlpha, double power = kPower);

/// The number of instances from which certifiable_margin is at most `margin`, 0 < margin < 1.
std::int64_t instances_to_certify(double d, double margin, double alpha = kAlpha,
                                  double power = kPower);

/// The smallest difference that a two-sided test at `alpha` finds with probability `power`:
/// (z(1 - alpha/2) + z(power)) · sqrt(d/n), 2.802 · sqrt(d/n) by default.
double detectable_difference(double d, std::int64_t n, double alpha = kAlpha,
                             double power = kPower);

/// The margin of one task: one percentage point, or 2.926 · sqrt(d0/n) if that is more. d0 is the
/// discordance of the noise floor (repeated runs of one side), so it is known before the
/// comparison.
double task_margin(std::int64_t n, double d0);

}  // namespace olmo::report
