#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "report/stats/bootstrap.h"
#include "report/stats/interval.h"

// The mean of a correlated series, as the difference of two loss curves is one.

namespace olmo::report {

/// Length of a block, in autocorrelation times. Two would do were the time known; as it is
/// estimated, four keep the share of false certifications at 5 %
/// (tests/report/block_bootstrap_test.cpp).
inline constexpr double kTimesPerBlock = 4;
/// A series must hold this many blocks before its mean gets an interval.
inline constexpr double kFewestBlocks = 10;

/// Integrated autocorrelation time 1 + 2·Σρ(t), in values, at least 1: the sum ends at Sokal's
/// self-consistent window (the first t >= 5·tau; "Monte Carlo methods in statistical mechanics",
/// 1989) and is multiplied by 1 + (2t + 1)/n against its bias (Wolff, "Monte Carlo errors with less
/// errors", 2004). 1 for a constant series. Absent if the series is shorter than
/// kFewestBlocks blocks (a trend, a random walk): then no part of it is independent of the rest.
/// Throws Error(kInput) if the series is empty or holds a value that is not finite.
std::optional<double> autocorrelation_time(std::span<const double> series);

struct BlockBootstrap {
  double mean = 0;
  double autocorrelation_time = 1;
  std::int64_t block = 1;          ///< length of a block, in values
  double blocks = 0;               ///< series length / block
  std::vector<double> deviations;  ///< of the resampled means from the mean, ascending

  /// Percentile interval, widened by the ratio of Student's quantile with blocks - 1 degrees of
  /// freedom to the normal one.
  [[nodiscard]] Interval interval(double level) const;
};

/// Moving-block bootstrap of a mean (Künsch, Ann. Stat. 1989), block = ceil(kTimesPerBlock·tau).
/// Its variance is too small by the share (tau² - 1)/(2·tau·block) for the correlations that cross
/// a block's ends (Künsch's bias term, for a correlation that decays geometrically) and by block/n
/// for centring on the series' own mean; the deviations are scaled up by both. Absent where the
/// series has no autocorrelation_time. Throws as autocorrelation_time, and Error(kUsage) if
/// resamples < 100.
std::optional<BlockBootstrap> block_bootstrap_mean(std::span<const double> series,
                                                   const BootstrapOptions& options = {});

/// Equivalence by the bootstrap's interval; p is the share of (widened) resampled means beyond a
/// margin, counted as in bootstrap_equivalence.
Equivalence block_equivalence(const BlockBootstrap& bootstrap, double margin,
                              double alpha = kAlpha);

}  // namespace olmo::report
