#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/interval.h"

// What all statistics share: error rates, intervals, the verdict of two one-sided tests, several
// tests at once, and what each asks of its arguments.

namespace olmo::report {

/// In the order of the values.
double sum_of(std::span<const double> values);
/// Of at least one value.
double mean_of(std::span<const double> values);

/// Error rate of every one-sided test.
inline constexpr double kAlpha = 0.05;
/// Level of the interval from which equivalence is read.
inline constexpr double kEquivalenceLevel = 1 - 2 * kAlpha;
/// The power for which margins and sample sizes are planned.
inline constexpr double kPower = 0.8;

/// Two one-sided tests (Schuirmann 1987): "the difference is at most -margin" and "at least margin"
/// must both be rejected at kAlpha, which is the same as the interval of kEquivalenceLevel lying
/// inside ±margin.
struct Equivalence {
  double estimate = 0;     ///< B minus A
  Interval interval;       ///< of level kEquivalenceLevel
  double margin = 0;       ///< in the unit of the estimate
  double p = 1;            ///< the larger of the two tests' p-values
  bool certified = false;  ///< the interval lies inside ±margin

  /// The smallest true |difference| that the two tests reject, each at kAlpha; below the margin
  /// exactly where it is certified.
  [[nodiscard]] double excludes() const {
    return std::max(std::abs(interval.low), std::abs(interval.high));
  }
};

/// An estimate whose error is Student's: value ± t · error. What a mean of runs, of pairs of runs,
/// of clusters or of a correlated series comes to.
struct Estimate {
  double value = 0;    ///< B minus A
  double error = 0;    ///< standard error; 0: there is no spread, the value is exact
  double degrees = 1;  ///< of freedom of `error`, above 0

  [[nodiscard]] Interval interval(double level) const;
  /// Two-sided p of "the true value is 0", where so much of the estimate may be none.
  [[nodiscard]] double p(double none = 0) const;
};

/// The two one-sided t tests of an estimate. Throws Error(kUsage) unless the margin is positive.
Equivalence equivalence_of(const Estimate& estimate, double margin);

/// The probability that an estimate of the true value `truth` with the true standard error `error`,
/// which is itself estimated with `degrees` of freedom, is certified within ±margin: the mean over
/// the chi-square distribution of the estimated error of what a normal value then has (Phillips,
/// "Power of the two one-sided tests procedure in bioequivalence", J. Pharmacokinet. Biopharm.
/// 1990). Throws as equivalence_of, and for error < 0 or degrees <= 0.
double certification_power(double error, double degrees, double margin, double truth = 0);

/// Holm's step-down adjustment ("A simple sequentially rejective multiple test procedure", Scand.
/// J. Stat. 1979) in the order of `p`: rejecting where the adjusted value is at most alpha keeps
/// the chance of any false rejection at alpha, whatever the dependence. For tests of differences.
/// Throws Error(kInput) if `p` is empty or a value is not in [0, 1].
std::vector<double> holm_adjusted(std::span<const double> p);

/// The p-value of "not all of these equivalences hold": the largest (intersection-union test,
/// Berger 1982). All parts must pass, each at alpha, so no correction is needed. Throws as
/// holm_adjusted; in particular an empty list does not pass.
double intersection_union_p(std::span<const double> p);

// A number that is missing must never turn into a passed test.

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
