#pragma once

#include <cstddef>
#include <cstdint>
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

}  // namespace olmo::report
