#pragma once

#include <span>
#include <string>

#include "core/error.h"

namespace olmo {

/// Quantile of ascending values by linear interpolation at p·(n-1), NumPy's default. Throws
/// Error(kInput) without values, Error(kUsage) unless p lies in [0, 1].
inline double sorted_quantile(std::span<const double> ascending, double p) {
  if (ascending.empty())
    throw Error(ErrorKind::kInput, "sorted_quantile: at least one value is needed, got none");
  if (!(p >= 0 && p <= 1))
    throw Error(ErrorKind::kUsage,
                "sorted_quantile: p must lie in [0, 1], received " + std::to_string(p));
  const double position = p * static_cast<double>(ascending.size() - 1);
  const auto index = static_cast<std::size_t>(position);
  if (index + 1 >= ascending.size()) return ascending.back();
  const double fraction = position - static_cast<double>(index);
  return ascending[index] + fraction * (ascending[index + 1] - ascending[index]);
}

}  // namespace olmo
