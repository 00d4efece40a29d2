#include "report/checks.h"

#include <cmath>

#include "core/error.h"

namespace olmo::report {

void require_finite(std::span<const double> values, const std::string& where) {
  if (values.empty())
    throw Error(ErrorKind::kInput, where + ": at least one value is needed, got none");
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i]))
      throw Error(ErrorKind::kInput, where + ": value " + std::to_string(i) +
                                         " must be a finite number, is " +
                                         std::to_string(values[i]));
  }
}

void require_fraction(double value, const std::string& what) {
  if (!(value > 0 && value < 1))
    throw Error(ErrorKind::kUsage,
                what + " must lie between 0 and 1, received " + std::to_string(value));
}

void require_positive(double value, const std::string& what) {
  if (!(value > 0 && std::isfinite(value)))
    throw Error(ErrorKind::kUsage,
                what + " must be finite and positive, received " + std::to_string(value));
}

}  // namespace olmo::report
