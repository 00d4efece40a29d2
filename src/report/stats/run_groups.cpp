#include "report/stats/run_groups.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "core/error.h"
#include "report/stats/checks.h"
#include "report/stats/distributions.h"

namespace olmo::report {
namespace {

constexpr std::size_t kMostEnumerated = 24;  // C(24, 12) = 2.7 million

double sum_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

double mean_of(std::span<const double> values) {
  return sum_of(values) / static_cast<double>(values.size());
}

double choose(std::size_t n, std::size_t k) {
  double ways = 1;
  for (std::size_t i = 1; i <= k; ++i)
    ways = ways * static_cast<double>(n - k + i) / static_cast<double>(i);
  return std::round(ways);
}

/// Counts relabellings of pooled runs whose means differ at least as much as the observed ones.
class Relabelling {
 public:
  Relabelling(std::span<const double> a, std::span<const double> b) : size_a_(a.size()) {
    pooled_.assign(a.begin(), a.end());
    pooled_.insert(pooled_.end(), b.begin(), b.end());
    const double centre = mean_of(pooled_);
    double largest = 0;
    for (double& value : pooled_) largest = std::max(largest, std::abs(value -= centre));
    // The means differ by a multiple of this sum, as the centred values sum to 0. Sums that are
    // equal but for rounding are equal.
    tolerance_ = 1e-12 * largest * static_cast<double>(pooled_.size());
    observed_ = std::abs(sum_of(std::span(pooled_).first(size_a_)));
  }

  [[nodiscard]] double exact_share() const {
    std::vector<char> is_a(pooled_.size(), 0);
    std::fill_n(is_a.begin(), size_a_, 1);
    double extreme = 0, all = 0;
    do {
      double sum = 0;
      for (std::size_t i = 0; i < pooled_.size(); ++i) sum += is_a[i] ? pooled_[i] : 0;
      extreme += is_extreme(sum);
      ++all;
    } while (std::prev_permutation(is_a.begin(), is_a.end()));
    return extreme / all;
  }

  [[nodiscard]] double sampled_share(const BootstrapOptions& options) const {
    std::vector<double> values = pooled_;
    ResampleDraws draws(options.seed, 0);
    double extreme = 1;
    for (std::int64_t r = 0; r < options.resamples; ++r) {
      for (std::size_t i = 0; i < size_a_; ++i)
        std::swap(values[i],
                  values[i + draws.below(static_cast<std::uint32_t>(values.size() - i))]);
      extreme += is_extreme(sum_of(std::span(values).first(size_a_)));
    }
    return extreme / (static_cast<double>(options.resamples) + 1);
  }

 private:
  [[nodiscard]] bool is_extreme(double sum) const {
    return std::abs(sum) >= observed_ - tolerance_;
  }

  std::size_t size_a_;
  std::vector<double> pooled_;
  double tolerance_ = 0;
  double observed_ = 0;
};

}  // namespace

double sample_standard_deviation(std::span<const double> values) {
  require_finite(values, "standard deviation");
  if (values.size() < 2)
    throw Error(ErrorKind::kInput, "standard deviation: at least two values are needed, got one");
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

PermutationTest permutation_test(std::span<const double> a, std::span<const double> b,
                                 const BootstrapOptions& options) {
  require_finite(a, "permutation test: A");
  require_finite(b, "permutation test: B");
  const std::size_t runs = a.size() + b.size();
  const Relabelling relabelling(a, b);
  PermutationTest result;
  result.difference = mean_of(b) - mean_of(a);
  result.exact = runs <= kMostEnumerated;
  if (result.exact) {
    result.p = relabelling.exact_share();
    result.minimum_p = std::min(1.0, (a.size() == b.size() ? 2 : 1) / choose(runs, a.size()));
  } else {
    if (options.resamples < kFewestResamples)
      throw Error(ErrorKind::kUsage, "permutation test: resamples must be at least 100, received " +
                                         std::to_string(options.resamples));
    result.p = relabelling.sampled_share(options);
    result.minimum_p = 1 / (static_cast<double>(options.resamples) + 1);
  }
  return result;
}

Equivalence welch_equivalence(std::span<const double> a, std::span<const double> b, double margin,
                              double alpha) {
  require_positive(margin, "equivalence: the margin");
  require_fraction(2 * alpha, "equivalence: twice alpha");
  const auto variance_of_mean = [](std::span<const double> values) {
    const double deviation = sample_standard_deviation(values);
    return deviation * deviation / static_cast<double>(values.size());
  };
  const double of_a = variance_of_mean(a), of_b = variance_of_mean(b);
  Equivalence result;
  result.estimate = mean_of(b) - mean_of(a);
  result.margin = margin;
  const double error = std::sqrt(of_a + of_b);
  double reach = 0;
  // Sides without any spread leave no doubt: the t-value is infinite.
  double t = (margin - std::abs(result.estimate)) * std::numeric_limits<double>::infinity();
  double df = static_cast<double>(a.size() + b.size() - 2);
  if (error > 0) {
    df = (of_a + of_b) * (of_a + of_b) /
         (of_a * of_a / static_cast<double>(a.size() - 1) +
          of_b * of_b / static_cast<double>(b.size() - 1));
    t = (margin - std::abs(result.estimate)) / error;
    reach = student_t_quantile(1 - alpha, df) * error;
  }
  result.interval = {result.estimate - reach, result.estimate + reach};
  result.p = std::isnan(t) ? 1 : student_t_cdf(-t, df);
  result.certified = result.interval.inside(margin);
  return result;
}

}  // namespace olmo::report
