#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "report/stats/curve_difference.h"
#include "report/stats/interval.h"
#include "report/stats/series_mean.h"

// How the difference of two loss curves ends, and how one curve jumps and drifts.

namespace olmo::report {

/// Equivalence of the mean difference over the last `share` (0 < share <= 1) of the tokens that the
/// curves have in common against ±margin, by batch means. Both are absent if that stretch has too
/// few values.
struct LastStretch {
  std::int64_t from_tokens = 0;  ///< first token count in the stretch
  std::int64_t points = 0;
  double mean = 0;
  std::optional<SeriesMean> series;
  std::optional<Equivalence> test;
};
LastStretch test_last_stretch(const CurveDifference& difference, double share, double margin);

/// Indices of upward spikes: more than `threshold` median absolute deviations (times 1.4826, so
/// that they are standard deviations of normal noise) above the median, both of the up to `window`
/// values before; so neither the first descent of a loss nor what follows a spike is one. Judged
/// from the 25th value (or the window's end) on. Where at least half of a window is equal, 1.2533
/// mean absolute deviations take their place (Iglewicz and Hoaglin, "How to detect and handle
/// outliers", 1993). Throws Error(kUsage) if window < 3 or threshold <= 0.
std::vector<std::int64_t> find_spikes(std::span<const double> values, double threshold = 5,
                                      std::int64_t window = 100);

/// Largest |value| after an exponential moving average that weighs a new value with 2/(span + 1),
/// span >= 1, beginning at the first value.
double largest_smoothed(std::span<const double> values, double span);

/// Is the difference on one side in the long run? Tests on the means of consecutive blocks, which
/// are taken as independent: `block` is at least twice the autocorrelation time. A rest shorter
/// than a block is dropped at the beginning.
struct Drift {
  std::int64_t blocks = 0;
  std::int64_t positive = 0;  ///< blocks with a mean above 0
  std::int64_t negative = 0;
  double sign_p = 1;   ///< exact two-sided binomial test of equally many, without blocks of mean 0
  double slope = 0;    ///< per value, of a line through the blocks' means
  double slope_p = 1;  ///< two-sided t-test of slope = 0
};
/// Absent with fewer than three blocks. Throws Error(kUsage) if block < 1.
std::optional<Drift> drift_test(std::span<const double> values, std::int64_t block);

}  // namespace olmo::report
