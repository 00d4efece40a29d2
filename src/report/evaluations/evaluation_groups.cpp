#include "report/evaluations/evaluation_groups.h"

#include <algorithm>
#include <cmath>

#include "report/evaluations/evaluation_match.h"
#include "report/stats/run_groups.h"

namespace olmo::report {
namespace {

/// 1 for a right answer, of each task and instance of the reference.
using Answers = std::vector<std::vector<double>>;

/// Nothing where `data` does not hold what the reference does.
std::optional<Answers> answers_of(const EvaluationData& reference, const EvaluationData& data) {
  if (!holds_the_same(reference, data)) return std::nullopt;
  Findings findings;
  Answers answers;
  for (const TaskPair& pair : match_tasks(reference, data, TaskMetric::kAccuracy, findings)) {
    auto& of_task = answers.emplace_back();
    for (const auto& instance : pair.instances) of_task.push_back(instance.b->right() ? 1 : 0);
  }
  return answers;
}

std::vector<Answers> answers_of(const EvaluationData& reference,
                                const std::vector<EvaluationData>& evaluations) {
  std::vector<Answers> found;
  for (const auto& data : evaluations)
    if (auto answers = answers_of(reference, data)) found.push_back(std::move(*answers));
  return found;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double macro_of(const Answers& answers) {
  std::vector<double> shares;
  for (const auto& task : answers) shares.push_back(mean_of(task));
  return mean_of(shares);
}

Test test_of(const Estimate& estimate, Endpoint endpoint, const std::string& name,
             const std::string& method, std::int64_t n) {
  const Estimate points{kPoints * estimate.value, kPoints * estimate.error, estimate.degrees};
  return {.endpoint = endpoint,
          .name = name,
          .method = method,
          .unit = "pp",
          .estimate = points.value,
          .interval90 = points.interval(0.90),
          .interval95 = points.interval(0.95),
          .p = points.p(),
          .standard_error = points.error,
          .degrees_of_freedom = points.degrees,
          .n = n};
}

std::string macro_name(std::size_t tasks) {
  return "macro average of " + std::to_string(tasks) + " tasks";
}

std::vector<std::string> task_names(const EvaluationData& data) {
  std::vector<std::string> names;
  for (const auto& task : data.tasks)
    if (!task.is_cost()) names.push_back(task.task);
  return names;
}

double squares_about_mean(const std::vector<Answers>& runs) {
  std::vector<double> values;
  for (const auto& run : runs) values.push_back(kPoints * macro_of(run));
  const double deviation = sample_standard_deviation(values);
  return deviation * deviation * static_cast<double>(values.size() - 1);
}

}  // namespace

bool holds_the_same(const EvaluationData& reference, const EvaluationData& data) {
  const auto names = task_names(reference);
  return data.damage.empty() && !names.empty() &&
         std::ranges::all_of(reference.tasks, [&](const EvaluatedTask& task) {
           if (task.is_cost()) return true;
           const EvaluatedTask* found = find_task(data, task.task);
           return found != nullptr && asked_the_same(task, *found);
         });
}

std::vector<Test> tests_of_repeats(const EvaluatedRuns& runs) {
  if (runs.a.empty()) return {};
  const auto a = answers_of(runs.a[0], runs.a), b = answers_of(runs.a[0], runs.b);
  if (a.size() < 2 || b.size() < 2) return {};
  const auto names = task_names(runs.a[0]);
  std::vector<RunScores> tasks(names.size());
  std::vector<Test> tests;
  std::int64_t all = 0;
  const auto add = [&](Test test) {
    test.k_a = std::ssize(a);
    test.k_b = std::ssize(b);
    tests.push_back(std::move(test));
  };
  for (std::size_t t = 0; t < names.size(); ++t) {
    for (const auto& run : a) tasks[t].a.push_back(run[t]);
    for (const auto& run : b) tasks[t].b.push_back(run[t]);
    const std::int64_t n = std::ssize(a[0][t]);
    if (n < 2) return {};
    all += n;
    add(test_of(two_level_difference(std::span(&tasks[t], 1)), Endpoint::kTask, names[t],
                "two levels, runs and instances", n));
  }
  if (names.size() > 1)
    add(test_of(two_level_difference(tasks), Endpoint::kMacro, macro_name(names.size()),
                "two levels, runs and instances", all));
  return tests;
}

std::optional<RepeatDeviation> macro_deviation(const EvaluatedRuns& runs) {
  if (runs.a.empty()) return std::nullopt;
  const auto a = answers_of(runs.a[0], runs.a), b = answers_of(runs.a[0], runs.b);
  if (a.size() < 2 || b.size() < 2) return std::nullopt;
  const auto degrees = static_cast<double>(a.size() + b.size() - 2);
  return RepeatDeviation{std::sqrt((squares_about_mean(a) + squares_about_mean(b)) / degrees),
                         margin_deviations(std::ssize(a), std::ssize(b))};
}

std::optional<Test> test_of_checkpoints(const EvaluatedRuns& steps) {
  if (steps.a.size() < 2) return std::nullopt;
  const auto a = answers_of(steps.a[0], steps.a), b = answers_of(steps.a[0], steps.b);
  if (a.size() != steps.a.size() || b.size() != steps.b.size()) return std::nullopt;
  const auto tasks = static_cast<double>(a[0].size());
  std::int64_t instances = 0;
  for (const auto& task : a[0]) instances += std::ssize(task);
  std::vector<double> differences;
  std::vector<std::int64_t> clusters;
  for (std::size_t step = 0; step < a.size(); ++step) {
    std::int64_t cluster = 0;
    for (std::size_t t = 0; t < a[step].size(); ++t) {
      // So that the mean over all instances gives each task the same weight.
      const double weight =
          static_cast<double>(instances) / (tasks * static_cast<double>(a[step][t].size()));
      for (std::size_t i = 0; i < a[step][t].size(); ++i) {
        differences.push_back(weight * (b[step][t][i] - a[step][t][i]));
        clusters.push_back(cluster++);
      }
    }
  }
  if (instances < 2) return std::nullopt;
  Test test =
      test_of(clustered_difference(differences, clusters), Endpoint::kMacro,
              macro_name(a[0].size()) + " over " + std::to_string(a.size()) + " checkpoints",
              "paired instances, clusters of checkpoints", instances);
  test.difference_only = true;
  return test;
}

}  // namespace olmo::report
