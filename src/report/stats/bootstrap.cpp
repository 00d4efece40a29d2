#include "report/stats/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/compute/parallel.h"
#include "core/compute/random.h"
#include "core/error.h"
#include "core/sorted_quantile.h"
#include "report/stats/distributions.h"

namespace olmo::report {
namespace {

constexpr double kFewestUnits = 2;

/// A stratum made ready for drawing.
class Sampler {
 public:
  explicit Sampler(const Stratum& stratum) : units_(std::ssize(stratum.differences)) {
    const bool weighted = !stratum.weights.empty();
    for (std::size_t i = 0; i < stratum.differences.size(); ++i) {
      const double difference = stratum.differences[i];
      if (weighted)
        pairs_.push_back({difference, stratum.weights[i]});
      else if (difference != 0)
        changed_.push_back(difference);
      const double weight = weighted ? stratum.weights[i] : 1;
      total_.difference += difference;
      total_.weight += weight;
      squared_weights_ += weight * weight;
    }
    for (std::size_t i = 0; i < stratum.differences.size(); ++i) {
      const double weight = weighted ? stratum.weights[i] : 1;
      const double rest = (stratum.differences[i] - estimate() * weight) / total_.weight;
      variance_ += rest * rest;
    }
    if (!weighted && !changed_.empty() && std::ssize(changed_) < units_)
      changes_.emplace_back(units_,
                            static_cast<double>(changed_.size()) / static_cast<double>(units_));
  }

  [[nodiscard]] double estimate() const { return total_.difference / total_.weight; }

  [[nodiscard]] double effective_units() const {
    return total_.weight * total_.weight / squared_weights_;
  }
  /// Of the estimate, by linearisation.
  [[nodiscard]] double variance() const { return variance_; }

  /// The estimate of one resample, its distance scaled for the effective units.
  [[nodiscard]] double resample(ResampleDraws& draws) const {
    const double value = pairs_.empty() ? resample_mean(draws) : resample_ratio(draws);
    return estimate() +
           std::sqrt(effective_units() / (effective_units() - 1)) * (value - estimate());
  }

 private:
  struct Unit {
    double difference = 0;
    double weight = 0;
  };

  // Of n draws, how many meet a unit with a difference, and then which.
  [[nodiscard]] double resample_mean(ResampleDraws& draws) const {
    if (changed_.empty()) return 0;
    const auto met = changes_.empty() ? units_ : changes_.front().draw(draws.uniform());
    const auto count = static_cast<std::uint32_t>(changed_.size());
    double sum = 0;
    for (std::int64_t i = 0; i < met; ++i) sum += changed_[draws.below(count)];
    return sum / static_cast<double>(units_);
  }

  // A resample of documents without a single byte says nothing and is drawn again.
  [[nodiscard]] double resample_ratio(ResampleDraws& draws) const {
    const auto count = static_cast<std::uint32_t>(units_);
    Unit sum;
    while (!(sum.weight > 0)) {
      sum = {};
      for (std::int64_t i = 0; i < units_; ++i) {
        const Unit& unit = pairs_[draws.below(count)];
        sum.difference += unit.difference;
        sum.weight += unit.weight;
      }
    }
    return sum.difference / sum.weight;
  }

  std::int64_t units_;
  std::vector<Unit> pairs_;
  std::vector<double> changed_;
  std::vector<BinomialTable> changes_;  // at most one
  Unit total_;
  double squared_weights_ = 0;
  double variance_ = 0;
};

double degrees_of_freedom(const std::vector<Sampler>& samplers) {
  double variance = 0, squares = 0, most = 0;
  for (const Sampler& sampler : samplers) {
    const double own = sampler.effective_units() - 1;
    variance += sampler.variance();
    squares += sampler.variance() * sampler.variance() / own;
    most += own;
  }
  return squares > 0 ? variance * variance / squares : most;
}

void check(const Stratum& stratum) {
  require_finite(stratum.differences, "bootstrap: differences");
  if (stratum.differences.size() > std::numeric_limits<std::uint32_t>::max())
    throw Error(ErrorKind::kInput, "bootstrap: at most 2^32 - 1 units can be drawn from");
  if (stratum.weights.empty()) return;
  require_finite(stratum.weights, "bootstrap: weights");
  if (stratum.weights.size() != stratum.differences.size())
    throw Error(ErrorKind::kInput, "bootstrap: each unit needs one weight, received " +
                                       std::to_string(stratum.differences.size()) + " units and " +
                                       std::to_string(stratum.weights.size()) + " weights");
  double sum = 0;
  for (const double weight : stratum.weights) {
    if (weight < 0) throw Error(ErrorKind::kInput, "bootstrap: a weight is negative");
    sum += weight;
  }
  if (!(sum > 0)) throw Error(ErrorKind::kInput, "bootstrap: the weights sum to 0");
}

}  // namespace

BinomialTable::BinomialTable(std::int64_t n, double p) {
  // Eight standard deviations and a few counts hold all but 1e-14 of the mass.
  const double mean = static_cast<double>(n) * p;
  const double reach = 8 * std::sqrt(mean * (1 - p)) + 12;
  first_ = std::max<std::int64_t>(0, static_cast<std::int64_t>(mean - reach));
  const auto last = std::min(n, static_cast<std::int64_t>(mean + reach) + 1);
  double pmf = binomial_pmf(first_, n, p), sum = 0;
  for (auto k = first_; k <= last; ++k) {
    // The recurrence is exact enough for 1e-10; a start that underflows is computed anew.
    if (k > first_)
      pmf = pmf > 1e-250
                ? pmf * (static_cast<double>(n - k + 1) / static_cast<double>(k)) * (p / (1 - p))
                : binomial_pmf(k, n, p);
    cumulative_.push_back(sum += pmf);
  }
}

std::int64_t BinomialTable::draw(double uniform) const {
  const auto found =
      std::upper_bound(cumulative_.begin(), cumulative_.end(), uniform * cumulative_.back());
  return first_ +
         std::min<std::ptrdiff_t>(found - cumulative_.begin(), std::ssize(cumulative_) - 1);
}

ResampleDraws::ResampleDraws(std::uint64_t seed, std::uint64_t resample)
    : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
      counter_{0, 0, static_cast<std::uint32_t>(resample),
               static_cast<std::uint32_t>(resample >> 32)} {}

void ResampleDraws::refill() {
  words_ = philox4x32_10(counter_, key_);
  if (++counter_[0] == 0) ++counter_[1];
  used_ = 0;
}

std::uint32_t ResampleDraws::below(std::uint32_t n) {
  std::uint64_t product = static_cast<std::uint64_t>(word()) * n;
  if (static_cast<std::uint32_t>(product) < n) {
    const std::uint32_t threshold = (0U - n) % n;
    while (static_cast<std::uint32_t>(product) < threshold)
      product = static_cast<std::uint64_t>(word()) * n;
  }
  return static_cast<std::uint32_t>(product >> 32);
}

double ResampleDraws::uniform() {
  const std::uint64_t high = word();
  return static_cast<double>(((high << 32) | word()) >> 11) * 0x1p-53;
}

void require_resamples(const BootstrapOptions& options, const std::string& where) {
  if (options.resamples < kFewestResamples)
    throw Error(ErrorKind::kUsage, where + ": resamples must be at least 100, received " +
                                       std::to_string(options.resamples));
}

std::vector<double> sorted_resamples(const BootstrapOptions& options,
                                     const std::function<double(ResampleDraws&)>& value) {
  std::vector<double> values(static_cast<std::size_t>(options.resamples));
  parallel_for(0, options.resamples, kResampleGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      ResampleDraws draws(options.seed, static_cast<std::uint64_t>(r));
      values[static_cast<std::size_t>(r)] = value(draws);
    }
  });
  std::sort(values.begin(), values.end());
  return values;
}

double widening(double degrees_of_freedom, double level) {
  const double p = (1 + level) / 2;
  return student_t_quantile(p, degrees_of_freedom) / normal_quantile(p);
}

Interval Bootstrap::interval(double level) const {
  require_fraction(level, "bootstrap: the level");
  const double wide = widening(degrees_of_freedom, level);
  const auto end = [&](double p) {
    return estimate + wide * (sorted_quantile(resampled, p) - estimate);
  };
  return {end((1 - level) / 2), end((1 + level) / 2)};
}

std::optional<Bootstrap> bootstrap_mean_of_strata(std::span<const Stratum> strata,
                                                  const BootstrapOptions& options) {
  if (strata.empty()) throw Error(ErrorKind::kInput, "bootstrap: at least one stratum is needed");
  require_resamples(options, "bootstrap");
  std::vector<Sampler> samplers;
  bool enough = true;
  for (const Stratum& stratum : strata) {
    check(stratum);
    samplers.emplace_back(stratum);
    if (samplers.back().effective_units() < kFewestUnits) enough = false;
  }
  if (!enough) return std::nullopt;
  const auto count = static_cast<double>(strata.size());
  Bootstrap result;
  result.degrees_of_freedom = degrees_of_freedom(samplers);
  for (const Sampler& sampler : samplers) result.estimate += sampler.estimate() / count;
  result.resampled = sorted_resamples(options, [&](ResampleDraws& draws) {
    double mean = 0;
    for (const Sampler& sampler : samplers) mean += sampler.resample(draws) / count;
    return mean;
  });
  return result;
}

Equivalence bootstrap_equivalence(const Bootstrap& bootstrap, double margin) {
  require_positive(margin, "equivalence: the margin");
  Equivalence result;
  result.estimate = bootstrap.estimate;
  result.interval = bootstrap.interval(kEquivalenceLevel);
  result.margin = margin;
  const auto& values = bootstrap.resampled;
  // A widened value lies beyond the margin where the value itself lies beyond a nearer bound.
  const double wide = widening(bootstrap.degrees_of_freedom, kEquivalenceLevel);
  const double high = bootstrap.estimate + (margin - bootstrap.estimate) / wide;
  const double low = bootstrap.estimate + (-margin - bootstrap.estimate) / wide;
  const auto above = values.end() - std::lower_bound(values.begin(), values.end(), high);
  const auto below = std::upper_bound(values.begin(), values.end(), low) - values.begin();
  result.p =
      (static_cast<double>(std::max(above, below)) + 1) / (static_cast<double>(values.size()) + 1);
  result.certified = result.interval.inside(margin);
  return result;
}

}  // namespace olmo::report
