#pragma once

namespace olmo::report {

/// Error rate of every one-sided test: equivalence is read off an interval of level 1 - 2·kAlpha.
inline constexpr double kAlpha = 0.05;
/// The power for which margins and sample sizes are planned.
inline constexpr double kPower = 0.8;

/// A confidence interval, both ends included.
struct Interval {
  double low = 0;
  double high = 0;

  [[nodiscard]] bool inside(double margin) const { return -margin < low && high < margin; }
};

/// Two one-sided tests (Schuirmann 1987): "the difference is at most -margin" and "at least margin"
/// must both be rejected at `alpha`, which is the same as the (1 - 2·alpha) interval lying inside
/// ±margin.
struct Equivalence {
  double estimate = 0;     ///< B minus A
  Interval interval;       ///< of level 1 - 2·alpha
  double margin = 0;       ///< in the unit of the estimate
  double p = 1;            ///< the larger of the two tests' p-values
  bool certified = false;  ///< the interval lies inside ±margin
};

}  // namespace olmo::report
