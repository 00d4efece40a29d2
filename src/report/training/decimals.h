// What the decimals of a log hide of a loss, of a mean loss, and of a difference of two.
#pragma once

#include <span>

#include "report/stats/interval.h"
#include "store/runs/recorded_run.h"

namespace olmo::report {

struct HiddenByDecimals {
  /// Standard error: losses that move by more than their last decimal are rounded up and down by
  /// chance.
  double error = 0;
  /// Those that do not are all rounded one way: so far off the means may be together.
  double bias = 0;
};

/// Of the mean of these losses of a run.
HiddenByDecimals hidden_in_mean(const store::RecordedRun& run, std::span<const double> losses);

/// How an imported log wrote its losses: with so many decimals or digits, or as fp32.
class WrittenLosses {
 public:
  explicit WrittenLosses(const store::RecordedRun& run);
  /// So far from such a loss the one that was rounded to it may lie; 0 where none was.
  [[nodiscard]] double half_unit(double loss) const;

 private:
  double unit_;          ///< of the last decimal
  int digits_ = 0;       ///< of the longest; 0: as many as the numbers have
  bool single_ = false;  ///< all are fp32
};

Interval widened(const Interval& interval, double by);

/// Equivalence within ±margin of a difference whose estimate may be off by `bias`.
Equivalence equivalence_despite(const Estimate& estimate, double bias, double margin);

}  // namespace olmo::report
