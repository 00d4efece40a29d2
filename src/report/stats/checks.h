// What every statistic asks of its arguments: a number that is missing must never turn into a
// passed test.
#pragma once

#include <cmath>
#include <span>
#include <string>

#include "core/error.h"

namespace olmo::report {

/// Throws Error(kInput) "WHERE: …" if `values` is empty or holds a NaN or an infinity.
inline void require_finite(std::span<const double> values, const std::string& where) {
  if (values.empty())
    throw Error(ErrorKind::kInput, where + ": at least one value is needed, got none");
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i]))
      throw Error(ErrorKind::kInput, where + ": value " + std::to_string(i) +
                                         " must be a finite number, is " +
                                         std::to_string(values[i]));
  }
}

/// Throws Error(kUsage) unless 0 < value < 1; `what` names it, with the function.
inline void require_fraction(double value, const std::string& what) {
  if (!(value > 0 && value < 1))
    throw Error(ErrorKind::kUsage,
                what + " must lie between 0 and 1, received " + std::to_string(value));
}

/// Throws Error(kUsage) unless value is finite and positive.
inline void require_positive(double value, const std::string& what) {
  if (!(value > 0 && std::isfinite(value)))
    throw Error(ErrorKind::kUsage,
                what + " must be finite and positive, received " + std::to_string(value));
}

}  // namespace olmo::report
