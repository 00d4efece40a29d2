#include "report/stats/run_groups.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "core/error.h"
#include "report/stats/distributions.h"

namespace olmo::report {
namespace {

constexpr std::size_t kMostEnumerated = 24;  // C(24, 12) = 2.7 million
/// Standard deviations between runs that two setups may differ by.
constexpr double kMarginDeviations = 2;

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

double variance_of_mean(std::span<const double> values) {
  const double deviation = sample_standard_deviation(values);
  return deviation * deviation / static_cast<double>(values.size());
}

double welch_degrees(double of_a, std::size_t runs_a, double of_b, std::size_t runs_b) {
  const double squares =
      of_a * of_a / static_cast<double>(runs_a - 1) + of_b * of_b / static_cast<double>(runs_b - 1);
  if (!(squares > 0)) return static_cast<double>(runs_a + runs_b - 2);
  return (of_a + of_b) * (of_a + of_b) / squares;
}

/// The probability of being certified, over the distributions of both estimated variances of the
/// mean; `margin_of` takes those.
template <class Margin>
double mean_power(double deviation_a, double deviation_b, std::int64_t k_a, std::int64_t k_b,
                  double truth, const Margin& margin_of) {
  constexpr int kPlaces = 40;  // of either distribution: 1e-3 of the power
  if (k_a < 2 || k_b < 2 || !(deviation_a >= 0 && deviation_b >= 0))
    throw Error(ErrorKind::kUsage,
                "power: at least two runs a side and deviations of at least 0 are needed");
  const double of_a = deviation_a * deviation_a / static_cast<double>(k_a);
  const double of_b = deviation_b * deviation_b / static_cast<double>(k_b);
  const double error = std::sqrt(of_a + of_b);
  if (error == 0) return std::abs(truth) < margin_of(0, 0) ? 1 : 0;
  const auto ratios = [](std::int64_t k) {
    std::vector<double> all;
    for (int i = 0; i < kPlaces; ++i)
      all.push_back(chi_squared_quantile((i + 0.5) / kPlaces, static_cast<double>(k - 1)) /
                    static_cast<double>(k - 1));
    return all;
  };
  const auto ratios_a = ratios(k_a), ratios_b = ratios(k_b);
  double power = 0;
  for (const double ratio_a : ratios_a) {
    for (const double ratio_b : ratios_b) {
      const double in_a = of_a * ratio_a, in_b = of_b * ratio_b;
      const double degrees =
          welch_degrees(in_a, static_cast<std::size_t>(k_a), in_b, static_cast<std::size_t>(k_b));
      const double room =
          margin_of(in_a, in_b) - student_t_quantile(1 - kAlpha, degrees) * std::sqrt(in_a + in_b);
      if (room > 0)
        power += normal_cdf((room - truth) / error) - normal_cdf((-room - truth) / error);
    }
  }
  return power / (kPlaces * kPlaces);
}

/// Instances that change with the setup and that a sample may lack: without them answers that agree
/// throughout would leave no doubt. With five a one-sided 95 % limit is at least Poisson's exact
/// one for zero to two changes (3.0, 4.7 and 6.3 in n) and 4 % below it for ten.
constexpr double kUnseen = 5;

/// What a task adds to the variance of the mean over the tasks.
struct TaskVariance {
  double instances = 0;  ///< between instances, of the difference of their means over runs
  double answers = 0;    ///< of single answers, left when run and instance are taken away
  double degrees = 1;    ///< of `instances`
};

/// Means over the runs of a side by instance, and the sum of squares that is left of the single
/// scores when the means of run and instance are taken away.
double rest_of_side(const std::vector<std::vector<double>>& scores, std::vector<double>& runs,
                    std::vector<double>& instances, double tasks) {
  const auto n = static_cast<double>(instances.size()), k = static_cast<double>(scores.size());
  if (scores.size() < 2 || scores.size() != runs.size() || instances.size() < 2)
    throw Error(ErrorKind::kInput,
                "two levels: at least two runs a side, the same in each task, and two instances "
                "are needed");
  std::vector<double> means;
  for (std::size_t r = 0; r < scores.size(); ++r) {
    require_finite(scores[r], "two levels");
    if (scores[r].size() != instances.size())
      throw Error(ErrorKind::kInput, "two levels: the runs have unlike numbers of instances");
    means.push_back(mean_of(scores[r]));
    runs[r] += means.back() / tasks;
    for (std::size_t i = 0; i < instances.size(); ++i) instances[i] += scores[r][i] / k;
  }
  const double centre = mean_of(means);
  double rest = 0;
  for (std::size_t r = 0; r < scores.size(); ++r) {
    for (std::size_t i = 0; i < instances.size(); ++i) {
      const double left = scores[r][i] - means[r] - instances[i] + centre;
      rest += left * left;
    }
  }
  return rest / ((n - 1) * (k - 1)) / k;
}

TaskVariance task_variance(const RunScores& task, std::vector<double>& runs_a,
                           std::vector<double>& runs_b, double tasks) {
  const std::size_t size = task.a.empty() ? 0 : task.a[0].size();
  std::vector<double> in_a(size), in_b(size);
  const double weight = tasks * tasks * static_cast<double>(size);
  TaskVariance variance;
  variance.answers =
      (rest_of_side(task.a, runs_a, in_a, tasks) + rest_of_side(task.b, runs_b, in_b, tasks)) /
      weight;
  for (std::size_t i = 0; i < size; ++i) in_b[i] -= in_a[i];
  const double deviation = sample_standard_deviation(in_b);
  variance.instances = (deviation * deviation + kUnseen / static_cast<double>(size)) / weight;
  variance.degrees = static_cast<double>(size - 1);
  return variance;
}

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
    require_resamples(options, "permutation test");
    result.p = relabelling.sampled_share(options);
    result.minimum_p = 1 / (static_cast<double>(options.resamples) + 1);
  }
  return result;
}

PermutationTest paired_permutation_test(std::span<const double> differences,
                                        const BootstrapOptions& options) {
  constexpr std::size_t kMostPairs = 20;
  require_finite(differences, "permutation test: differences");
  const double observed = std::abs(sum_of(differences));
  double largest = 0;
  for (const double d : differences) largest = std::max(largest, std::abs(d));
  const double least =
      observed -
      1e-12 * largest * static_cast<double>(differences.size());  // equal but for rounding
  PermutationTest result;
  result.difference = mean_of(differences);
  result.exact = differences.size() <= kMostPairs;
  if (!result.exact) require_resamples(options, "permutation test");
  const double all = result.exact ? std::exp2(static_cast<double>(differences.size()))
                                  : static_cast<double>(options.resamples) + 1;
  ResampleDraws draws(options.seed, 0);
  double extreme = result.exact ? 0 : 1;
  for (std::int64_t swap = result.exact ? 0 : 1; swap < static_cast<std::int64_t>(all); ++swap) {
    double sum = 0;
    for (std::size_t i = 0; i < differences.size(); ++i) {
      const bool swapped = result.exact ? (swap >> i & 1) != 0 : draws.below(2) != 0;
      sum += swapped ? -differences[i] : differences[i];
    }
    extreme += std::abs(sum) >= least;
  }
  result.p = extreme / all;
  result.minimum_p = (result.exact ? 2 : 1) / all;
  return result;
}

Estimate welch_difference(std::span<const double> a, std::span<const double> b) {
  const double of_a = variance_of_mean(a), of_b = variance_of_mean(b);
  return {mean_of(b) - mean_of(a), std::sqrt(of_a + of_b),
          welch_degrees(of_a, a.size(), of_b, b.size())};
}

Estimate paired_difference(std::span<const double> differences) {
  return {mean_of(differences), std::sqrt(variance_of_mean(differences)),
          static_cast<double>(differences.size() - 1)};
}

Estimate clustered_difference(std::span<const double> differences,
                              std::span<const std::int64_t> cluster) {
  require_finite(differences, "clusters");
  if (differences.size() != cluster.size())
    throw Error(ErrorKind::kInput, "clusters: each difference needs its cluster, received " +
                                       std::to_string(differences.size()) + " and " +
                                       std::to_string(cluster.size()));
  Estimate result;
  result.value = mean_of(differences);
  std::map<std::int64_t, double> sums;
  for (std::size_t i = 0; i < cluster.size(); ++i)
    sums[cluster[i]] += differences[i] - result.value;
  const auto groups = static_cast<double>(sums.size());
  if (sums.size() < 2) throw Error(ErrorKind::kInput, "clusters: at least two are needed, got one");
  double squares = 0;
  for (const auto& [name, sum] : sums) squares += sum * sum;
  result.error =
      std::sqrt(squares * groups / (groups - 1)) / static_cast<double>(differences.size());
  result.degrees = groups - 1;
  return result;
}

Estimate two_level_difference(std::span<const RunScores> tasks) {
  if (tasks.empty()) throw Error(ErrorKind::kInput, "two levels: at least one task is needed");
  const auto count = static_cast<double>(tasks.size());
  std::vector<double> runs_a(tasks[0].a.size()), runs_b(tasks[0].b.size());
  double instances = 0, instances_squared = 0, answers = 0;
  for (const RunScores& task : tasks) {
    const TaskVariance variance = task_variance(task, runs_a, runs_b, count);
    instances += variance.instances;
    instances_squared += variance.instances * variance.instances / variance.degrees;
    answers += variance.answers;
  }
  const Estimate runs = welch_difference(runs_a, runs_b);
  const double of_runs = runs.error * runs.error;
  const double total = std::max({of_runs, instances, of_runs + instances - answers});
  const double squares = of_runs * of_runs / runs.degrees + instances_squared;
  return {runs.value, std::sqrt(total), squares > 0 ? total * total / squares : runs.degrees};
}

double margin_deviations(std::int64_t k_a, std::int64_t k_b) {
  const double spread = std::sqrt(1 / static_cast<double>(k_a) + 1 / static_cast<double>(k_b));
  const auto degrees = static_cast<double>(k_a + k_b - 2);
  if (k_a < 2 || k_b < 2) return kMarginDeviations;
  const double limit =
      spread * (student_t_quantile(1 - kAlpha, degrees) +
                noncentral_t_quantile(kAlpha, degrees, kMarginDeviations / spread));
  return std::min(kMarginDeviations, limit);
}

double paired_margin_deviations(std::int64_t pairs, double error, double deviation) {
  if (pairs < 2 || !(deviation > 0)) return kMarginDeviations;
  // The f with 2 - f + t·r = z·sqrt(r² + f²/(2·degrees)), r = error/deviation: the difference and
  // the deviation err independently, the latter by 1/sqrt(2·degrees) of itself.
  const auto degrees = static_cast<double>(pairs - 1);
  const double r = error / deviation, z = normal_quantile(1 - kAlpha);
  const double reach = kMarginDeviations + student_t_quantile(1 - kAlpha, degrees) * r;
  const double a = 1 - z * z / (2 * degrees), c = reach * reach - z * z * r * r;
  const double f = std::abs(a) < 1e-9
                       ? c / (2 * reach)
                       : (reach - std::sqrt(std::max(0.0, reach * reach - a * c))) / a;
  return std::clamp(f, 0.0, kMarginDeviations);
}

double welch_power(double deviation_a, double deviation_b, std::int64_t k_a, std::int64_t k_b,
                   double margin, double truth) {
  require_positive(margin, "power: the margin");
  return mean_power(deviation_a, deviation_b, k_a, k_b, truth,
                    [&](double, double) { return margin; });
}

double repeats_power(double deviation, std::int64_t k, double smallest, double largest,
                     double truth) {
  const double times = margin_deviations(k, k);
  return mean_power(deviation, deviation, k, k, truth, [&](double in_a, double in_b) {
    const double pooled = std::sqrt((in_a + in_b) * static_cast<double>(k) / 2);
    return std::clamp(times * pooled, smallest, largest);
  });
}

}  // namespace olmo::report
