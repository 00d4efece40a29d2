#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "report/stats/interval.h"

// The mean of a correlated series, as the difference of two loss curves is one.

namespace olmo::report {

/// A series needs this many values before its mean gets an interval.
inline constexpr std::size_t kFewestValues = 20;

struct SeriesMean {
  Estimate estimate;
  std::int64_t batch = 1;    ///< values in a batch
  std::int64_t batches = 0;  ///< whole batches; a rest at the beginning counts for the mean alone
  double correlation = 0;    ///< of neighbouring batches, as the test assumes it
  /// Independent values of the same spread whose mean would be as sure, at most all.
  double effective = 0;

  /// Values that tell as much as one independent value, at least 1.
  [[nodiscard]] double autocorrelation_time() const;
  /// Values in a block that is taken as independent of the next: twice the autocorrelation time.
  [[nodiscard]] std::int64_t block() const;
};

/// Batch means (Schmeiser, "Batch size effects in the analysis of simulation output", Oper. Res.
/// 1982): the series is cut into k batches, 30 to 59 of them up to 900 values and √n beyond, whose
/// means are taken as an autoregression of order one. Its coefficient is estimated, corrected for
/// its bias (r·k + 1)/(k - 3) (Marriott and Pope, "Bias in the estimation of autocorrelations",
/// Biometrika 1954), raised by (0.4 + 9/k) of its standard errors √((1 - r²)/k) as it is uncertain,
/// and kept in [0, 0.95]. It gives the effective number m of batches and with it the standard error
/// s·√((1 - 1/k)/(m - 1)) with max(1, m - 1) degrees of freedom (Bayley and Hammersley, "The
/// effective number of independent observations in an autocorrelated time series", J. R. Stat. Soc.
/// Suppl. 1946).
///
/// The raise is the one constant that was tuned: for 20 to 20,000 values with an autoregressive
/// noise of coefficient 0 to 0.9 the one-sided error is at most 5 % and the 95 % interval covers
/// 93 % or more (series_mean_test.cpp; scripts/verdict_simulation.sh takes longer and prints the
/// table). A slow noise below a white one of the same size shows only in long series: below 100
/// values its interval is too narrow. A trend has correlated batches, so that its interval is wider
/// than its values. Absent below kFewestValues values. Throws Error(kInput) if the series is empty
/// or holds a value that is not finite.
std::optional<SeriesMean> mean_of_series(std::span<const double> series);

/// The probability that the mean of n values without a true difference is certified within ±margin,
/// from 1,000 autoregressions of that standard deviation and autocorrelation time (>= 1, in
/// values): to 1.6 percentage points (one standard error) at worst. n >= kFewestValues.
double series_power(double deviation, double time, std::int64_t n, double margin);

}  // namespace olmo::report
