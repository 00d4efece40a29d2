#include "report/evaluations/score_agreement.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "core/files/recorded_json.h"
#include "core/sorted_quantile.h"
#include "core/text/number.h"
#include "report/comparability/comparability.h"
#include "report/evaluations/task_flips.h"
#include "report/stats/distributions.h"
#include "report/stats/run_groups.h"

namespace olmo::report {
namespace {

constexpr double kAgreementDeviations = 1.96;
/// Of the instances, so many may hold an option that moved further than rounding.
constexpr double kOutliers = 0.001;

constexpr NumericNoise kFp32 = {
    Precision::kFp32,
    kRoundingOfMeans,
    2e-5,
    1e-3,
    1e-4,
    "fp32: two implementations of one model agree in the loss to 2e-6 (relative), accelerators of "
    "two vendors to 1.1e-6, and a change of the code was never seen below 9.5e-5"};
constexpr NumericNoise kBf16 = {
    Precision::kAmpBf16,
    3e-4,
    1.5e-3,
    0.25,
    0.02,
    "bf16, or a precision that is not recorded: sums in another order move the mean loss by 2e-4 "
    "to "
    "3e-4 (relative), two vendors' by 1.5e-3, and one token's by 1.2e-2"};

template <typename Visit>
void for_each_option(const TaskPair& task, const InstancePair& pair, const Visit& visit) {
  const auto a = logprobs_of(*task.a, *pair.a), b = logprobs_of(*task.b, *pair.b);
  for (std::size_t i = 0; i < a.size(); ++i) visit(a[i], b[i]);
}

std::vector<double> log_shares(std::span<const double> logprobs) {
  const double highest = *std::max_element(logprobs.begin(), logprobs.end());
  double sum = 0;
  for (const double value : logprobs) sum += std::exp(value - highest);
  std::vector<double> shares;
  for (const double value : logprobs) shares.push_back(value - highest - std::log(sum));
  return shares;
}

/// The mean of both directions: Σ (p - q) · log(p / q) / 2.
double divergence(const TaskPair& task, const InstancePair& pair) {
  const auto a = log_shares(logprobs_of(*task.a, *pair.a));
  const auto b = log_shares(logprobs_of(*task.b, *pair.b));
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += (std::exp(a[i]) - std::exp(b[i])) * (a[i] - b[i]) / 2;
  return sum;
}

std::string precision_of(const EvaluationData& data) {
  const Json policy = recorded_json(data.policy);
  if (!policy.is_object() || !policy.contains("precision") || !policy["precision"].is_string())
    return "";
  return policy["precision"].get<std::string>();
}

/// What the tests take from the instances of all tasks.
struct Shifts {
  std::vector<double> means;  ///< of each instance, over its options
  double size = 0;            ///< mean |log-likelihood|
  std::int64_t outliers = 0;  ///< instances with an option beyond the noise
  bool equal_bits = true;
};

Shifts shifts_of(const std::vector<TaskPair>& tasks, const NumericNoise& noise) {
  Shifts found;
  for (const TaskPair& task : tasks) {
    for (const InstancePair& pair : task.instances) {
      double sum = 0, size = 0;
      bool outlier = false;
      for_each_option(task, pair, [&](double a, double b) {
        sum += b - a;
        size += (std::abs(a) + std::abs(b)) / 2;
        found.equal_bits &= a == b;
        const double tolerance =
            noise.absolute + noise.relative * std::max(std::abs(a), std::abs(b));
        outlier |= std::abs(b - a) > tolerance;
      });
      const auto options = static_cast<double>(pair.a->options);
      found.means.push_back(sum / options);
      found.size += size / options;
      found.outliers += outlier;
    }
  }
  if (!found.means.empty()) found.size /= static_cast<double>(found.means.size());
  return found;
}

Test mean_shift(const Shifts& shifts, const NumericNoise& noise) {
  const bool enough = shifts.means.size() > 1;
  const Estimate estimate =
      enough ? paired_difference(shifts.means) : Estimate{.value = shifts.means[0]};
  const double size = std::max(shifts.size, 1.0);
  Test test{.endpoint = Endpoint::kScores,
            .name = "mean log-likelihood of an option",
            .method = "paired t over instances",
            .unit = "nats",
            .estimate = estimate.value,
            .interval90 = estimate.interval(0.90),
            .interval95 = estimate.interval(0.95),
            .n = std::ssize(shifts.means),
            .equal_bits = shifts.equal_bits,
            .too_few = !enough && !shifts.equal_bits,
            .margin = {.value = noise.mean * size, .reason = noise.reason}};
  if (!enough) return test;
  test.standard_error = estimate.error;
  test.degrees_of_freedom = estimate.degrees;
  // Of a shift by no more than rounding may be biased.
  test.p = estimate.p(noise.floor * size);
  return test;
}

Test outlier_share(const Shifts& shifts) {
  const std::int64_t n = std::ssize(shifts.means);
  const double percent = 100 * static_cast<double>(shifts.outliers) / static_cast<double>(n);
  const auto limits = [&](double level) {
    const double alpha = (1 - level) / 2;
    return Interval{100 * (1 - binomial_upper_limit(n - shifts.outliers, n, alpha)),
                    100 * binomial_upper_limit(shifts.outliers, n, alpha)};
  };
  return {.endpoint = Endpoint::kScores,
          .name = "share of instances whose scores moved further than rounding",
          .method = "exact binomial test",
          .unit = "%",
          .estimate = percent,
          .interval90 = limits(0.90),
          .interval95 = limits(0.95),
          .p = std::max(0.0, 1 - binomial_cdf(shifts.outliers - 1, n, kOutliers)),
          .n = n,
          .equal_bits = shifts.equal_bits,
          .difference_only = true,
          .margin = {.value = 100 * kOutliers,
                     .reason = "one instance in a thousand, for the tail of rounding"}};
}

}  // namespace

ScoreAgreement score_agreement(const TaskPair& task) {
  ScoreAgreement agreement;
  std::vector<double> differences;
  for (const InstancePair& pair : task.instances) {
    agreement.divergence += divergence(task, pair) / static_cast<double>(task.instances.size());
    for_each_option(task, pair, [&](double a, double b) {
      agreement.equal_bits += same_bits(a, b) ? 1 : 0;
      differences.push_back(b - a);
    });
  }
  agreement.options = std::ssize(differences);
  const auto options = static_cast<double>(agreement.options);
  agreement.mean = std::accumulate(differences.begin(), differences.end(), 0.0) / options;
  if (agreement.options > 1) agreement.standard_deviation = sample_standard_deviation(differences);
  agreement.low = agreement.mean - kAgreementDeviations * agreement.standard_deviation;
  agreement.high = agreement.mean + kAgreementDeviations * agreement.standard_deviation;
  for (double& difference : differences) difference = std::abs(difference);
  std::sort(differences.begin(), differences.end());
  agreement.median = sorted_quantile(differences, 0.5);
  agreement.quantile999 = sorted_quantile(differences, 0.999);
  agreement.largest = differences.back();
  return agreement;
}

const NumericNoise& numeric_noise(const EvaluationData& a, const EvaluationData& b) {
  const std::string fp32 = to_string(Precision::kFp32);
  return precision_of(a) == fp32 && precision_of(b) == fp32 ? kFp32 : kBf16;
}

std::vector<Test> score_tests(const std::vector<TaskPair>& tasks, const NumericNoise& noise) {
  const Shifts shifts = shifts_of(tasks, noise);
  if (shifts.means.empty()) return {};
  return {mean_shift(shifts, noise), outlier_share(shifts)};
}

}  // namespace olmo::report
