#pragma once

#include <cstdint>
#include <optional>

#include "report/stats/curve_difference.h"

namespace olmo::report {

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
