#pragma once

#include <span>
#include <string>

namespace olmo::report {

/// Throws Error(kInput) "WHERE: …" if `values` is empty or holds a NaN or an infinity: a number
/// that is missing must never turn into a passed test.
void require_finite(std::span<const double> values, const std::string& where);
/// Throws Error(kUsage) unless 0 < value < 1; `what` names it, with the function.
void require_fraction(double value, const std::string& what);
/// Throws Error(kUsage) unless value is finite and positive.
void require_positive(double value, const std::string& what);

}  // namespace olmo::report
