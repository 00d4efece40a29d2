#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "report/stats/interval.h"

// Resampling with a generator of our own: resample r draws from the Philox stream (seed, r), so a
// result depends on the data, the seed and the number of resamples, not on the threads.

namespace olmo::report {

inline constexpr std::int64_t kFewestResamples = 100;
/// Resamples that a thread takes at a time.
inline constexpr std::int64_t kResampleGrain = 512;

struct BootstrapOptions {
  std::int64_t resamples = 10'000;
  std::uint64_t seed = 0;
};

/// The random numbers of one resample.
class ResampleDraws {
 public:
  ResampleDraws(std::uint64_t seed, std::uint64_t resample);

  std::uint32_t word() {
    if (used_ == words_.size()) refill();
    return words_[used_++];
  }
  /// Uniform in 0 .. n-1, n >= 1, without bias (Lemire, "Fast random integer generation in an
  /// interval", ACM TOMACS 2019).
  std::uint32_t below(std::uint32_t n);
  /// Uniform in [0, 1): a multiple of 2^-53.
  double uniform();

 private:
  void refill();

  std::array<std::uint32_t, 2> key_{};
  std::array<std::uint32_t, 4> counter_{};
  std::array<std::uint32_t, 4> words_{};
  std::size_t used_ = 4;
};

/// Draws X ~ Binomial(n, p) for one fixed n and p from a table of its distribution function.
class BinomialTable {
 public:
  BinomialTable(std::int64_t n, double p);
  [[nodiscard]] std::int64_t draw(double uniform) const;

 private:
  std::int64_t first_ = 0;
  std::vector<double> cumulative_;
};

/// Throws Error(kUsage) "WHERE: …" if resamples < kFewestResamples.
void require_resamples(const BootstrapOptions& options, const std::string& where);

/// `value` of each resample, ascending; called by several threads at once.
std::vector<double> sorted_resamples(const BootstrapOptions& options,
                                     const std::function<double(ResampleDraws&)>& value);

/// What widens a percentile interval of `level`: Student's quantile over the normal one.
double widening(double degrees_of_freedom, double level);

/// One task or domain: the units that are drawn together (instances, documents, or groups of
/// instances that share a passage), each with B minus A summed over the unit and with the unit's
/// weight. Its estimate is Σ differences / Σ weights. Empty weights are 1 each.
///   accuracy:       differences in {-1, 0, 1}, no weights
///   bits per byte:  (nll_b - nll_a) / ln 2, weights = UTF-8 bytes of the document
struct Stratum {
  std::span<const double> differences;
  std::span<const double> weights;
};

struct Bootstrap {
  double estimate = 0;            ///< of the data themselves
  std::vector<double> resampled;  ///< ascending
  double degrees_of_freedom =
      0;  ///< Welch-Satterthwaite over the strata, from their effective units

  /// Percentile interval (Efron 1979), quantiles linearly interpolated, widened about the estimate
  /// by the ratio of Student's quantile to the normal one.
  [[nodiscard]] Interval interval(double level) const;
};

/// Stratified paired bootstrap of the mean over strata of Σ differences / Σ weights: units are
/// drawn with replacement within their stratum, the same ones for both runs. One stratum gives the
/// ratio estimator of a single domain. A stratum counts as (Σ weights)²/Σ weights² effective units
/// m (Kish 1965): its resampled deviations are scaled by sqrt(m/(m - 1)), so that a few long
/// documents do not feign precision. Absent if a stratum has fewer than two. Where there are no
/// weights only units with a difference are looked up (their number is drawn first), so a resample
/// costs as much as there are differences.
///
/// Where few pairs are discordant percentile intervals of accuracies are too narrow (6.7 % false
/// certifications instead of 5 %, and no width at all without a discordant pair): certify those by
/// macro_equivalence (paired_outcomes.h).
///
/// Throws Error(kInput) for no stratum, an empty one, a value that is not finite, a weight below 0
/// or weights that sum to 0; Error(kUsage) if resamples < kFewestResamples.
std::optional<Bootstrap> bootstrap_mean_of_strata(std::span<const Stratum> strata,
                                                  const BootstrapOptions& options = {});

/// Equivalence by the interval; p is the share of (widened) resampled values beyond a margin, both
/// counted with one more (Davison and Hinkley 1997, sec. 4.2).
Equivalence bootstrap_equivalence(const Bootstrap& bootstrap, double margin);

}  // namespace olmo::report
