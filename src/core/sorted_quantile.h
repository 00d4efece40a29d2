#pragma once

#include <span>

namespace olmo {

/// Quantile of ascending values by linear interpolation at p·(n-1), NumPy's default. Throws
/// Error(kInput) without values, Error(kUsage) unless p lies in [0, 1].
double sorted_quantile(std::span<const double> ascending, double p);

}  // namespace olmo
