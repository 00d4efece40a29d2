#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

// Two training runs as curves over tokens. Curves have strictly ascending token counts and finite
// values; anything else throws Error(kInput), as gaps and NaN steps are marked before, not smoothed
// over here.

namespace olmo::report {

/// The places of each value that two strictly ascending lists have in common.
std::vector<std::pair<std::size_t, std::size_t>> common_places(std::span<const std::int64_t> a,
                                                               std::span<const std::int64_t> b);

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

}  // namespace olmo::report
