#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "report/stats/block_bootstrap.h"
#include "report/stats/interval.h"

// Two training runs as curves over tokens. Curves have strictly ascending token counts and finite
// values; anything else throws Error(kInput), as gaps and NaN steps are marked before, not smoothed
// over here.

namespace olmo::report {

struct Curve {
  std::span<const std::int64_t> tokens;
  std::span<const double> values;
};

/// B minus A where both have a value.
struct CurveDifference {
  std::vector<std::int64_t> tokens;
  std::vector<double> values;
  std::int64_t only_a = 0;  ///< points of A without a partner
  std::int64_t only_b = 0;
};

/// The difference at equal token counts, for runs of one batch size.
CurveDifference difference_on_common_tokens(const Curve& a, const Curve& b);

/// The difference of the means in bins of `bin_tokens` tokens, (k·bin, (k+1)·bin], dated to the
/// bin's end: for runs whose batch sizes differ. only_a and only_b count bins.
CurveDifference difference_in_bins(const Curve& a, const Curve& b, std::int64_t bin_tokens);

/// δ of the loss test: twice the standard deviation between seeds, at least 0.002 nats.
double loss_margin(double seed_standard_deviation);

/// Equivalence of the mean difference over the last `share` of the tokens (0 < share <= 1) against
/// ±margin, by moving blocks. The test is absent if that stretch has too few independent values.
struct LastStretch {
  std::int64_t from_tokens = 0;  ///< first token count in the stretch
  std::int64_t points = 0;
  double mean = 0;
  std::optional<BlockBootstrap> bootstrap;
  std::optional<Equivalence> test;
};
LastStretch test_last_stretch(const CurveDifference& difference, double share, double margin,
                              const BootstrapOptions& options = {}, double alpha = kAlpha);

/// How |difference| grows: log |d| = log_level + slope · min(0, log tokens - log knee_tokens), a
/// power law that ends at a level. Fitted by least squares to the medians of log |d| in ten bins
/// per factor of ten in tokens, as the zero crossings of d reach down without bound; the knee is
/// the bin that leaves the least squares.
struct Growth {
  double slope = 0;  ///< λ: |d| ∝ tokens^λ before the knee
  double log_level = 0;
  double knee_tokens = 0;
  bool saturated = false;  ///< the knee lies before the last bin and pays for itself (BIC)
  std::int64_t bins = 0;
  double residual = 0;  ///< standard deviation about the fit, in units of log |d|
};
/// Points with d = 0 are left out. Absent with fewer than four bins.
std::optional<Growth> fit_growth(const CurveDifference& difference);

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
