#include "report/stats/series_mean.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "report/stats/bootstrap.h"
#include "report/stats/distributions.h"

namespace olmo::report {
namespace {

constexpr double kFewestBatches = 30;
constexpr double kLargestCorrelation = 0.95;

/// Σ (x[i] - mean)·(x[i + lag] - mean).
double products(std::span<const double> values, double mean, std::size_t lag) {
  double sum = 0;
  for (std::size_t i = lag; i < values.size(); ++i)
    sum += (values[i] - mean) * (values[i - lag] - mean);
  return sum;
}

std::vector<double> batch_means(std::span<const double> series, std::size_t batch) {
  std::vector<double> means;
  for (std::size_t i = series.size() % batch; i < series.size(); i += batch)
    means.push_back(mean_of(series.subspan(i, batch)));
  return means;
}

/// The correlation of neighbouring batches that the interval allows for.
double assumed_correlation(double r, double batches) {
  const double unbiased = (r * batches + 1) / (batches - 3);
  const double raise = (0.4 + 9 / batches) * std::sqrt(std::max(0.0, 1 - r * r) / batches);
  return std::clamp(unbiased + raise, 0.0, kLargestCorrelation);
}

/// Of how many independent values the mean of `count` values has the variance.
double effective_count(double correlation, std::size_t count) {
  double variance = 1, power = 1;
  const auto n = static_cast<double>(count);
  for (std::size_t lag = 1; lag < count; ++lag) {
    power *= correlation;
    variance += 2 * (1 - static_cast<double>(lag) / n) * power;
  }
  return n / variance;
}

}  // namespace

double SeriesMean::autocorrelation_time() const {
  return static_cast<double>(batch * batches) / effective;
}

std::int64_t SeriesMean::block() const {
  return static_cast<std::int64_t>(std::ceil(2 * autocorrelation_time()));
}

std::optional<SeriesMean> mean_of_series(std::span<const double> series) {
  require_finite(series, "mean of a series");
  if (series.size() < kFewestValues) return std::nullopt;
  const auto values = static_cast<double>(series.size());
  const double wanted = std::max(kFewestBatches, std::sqrt(values));
  const auto batch = std::max<std::size_t>(1, static_cast<std::size_t>(values / wanted));
  const std::vector<double> means = batch_means(series, batch);
  const auto batches = static_cast<double>(means.size());

  SeriesMean result;
  result.estimate.value = mean_of(series);
  result.batch = static_cast<std::int64_t>(batch);
  result.batches = std::ssize(means);
  result.effective = static_cast<double>(result.batch * result.batches);
  result.estimate.degrees = batches - 1;
  const double centre = mean_of(means);
  const double squares = products(means, centre, 0);
  if (!(squares > 0)) return result;  // a constant
  result.correlation = assumed_correlation(products(means, centre, 1) / squares, batches);
  const double independent = effective_count(result.correlation, means.size());
  result.estimate.error = std::sqrt(squares / batches / (independent - 1));
  result.estimate.degrees = std::max(1.0, independent - 1);
  const double spread = products(series, result.estimate.value, 0) / (values - 1);
  result.effective =
      std::min(result.effective, spread / (result.estimate.error * result.estimate.error));
  return result;
}

double series_power(double deviation, double time, std::int64_t n, double margin) {
  constexpr std::int64_t kSeries = 1000;
  require_positive(margin, "power: the margin");
  if (!(deviation >= 0 && time >= 1) || n < static_cast<std::int64_t>(kFewestValues))
    throw Error(ErrorKind::kUsage,
                "power: a deviation of at least 0, a time of at least 1 and 20 values are needed");
  const double coefficient = (time - 1) / (time + 1);
  std::vector<double> series(static_cast<std::size_t>(n));
  double certified = 0;
  for (std::int64_t sample = 0; sample < kSeries; ++sample) {
    ResampleDraws draws(0, static_cast<std::uint64_t>(sample));
    // A uniform number is a multiple of 2^-53: half of one more keeps it inside (0, 1).
    const auto normal = [&] { return normal_quantile(draws.uniform() + 0x1p-54); };
    double x = normal();
    for (double& value : series) {
      value = deviation * x;
      x = coefficient * x + std::sqrt(1 - coefficient * coefficient) * normal();
    }
    certified += equivalence_of(mean_of_series(series)->estimate, margin).certified;
  }
  return certified / kSeries;
}

}  // namespace olmo::report
