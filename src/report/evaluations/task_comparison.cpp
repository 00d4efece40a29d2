#include "report/evaluations/task_comparison.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "report/evaluations/evaluation_match.h"
#include "report/evaluations/task_flips.h"
#include "report/stats/bootstrap.h"
#include "report/stats/distributions.h"
#include "report/stats/interval.h"
#include "report/stats/paired_outcomes.h"

namespace olmo::report {
namespace {

/// So few discordant pairs are no normal sum.
constexpr std::int64_t kFewestDiscordant = 10;

PairedCounts count_right(const std::vector<InstancePair>& instances) {
  PairedCounts counts;
  for (const auto& [a, b] : instances) {
    counts.both_right += a->right() && b->right();
    counts.only_a_right += a->right() && !b->right();
    counts.only_b_right += !a->right() && b->right();
    counts.both_wrong += !a->right() && !b->right();
  }
  return counts;
}

double share(std::int64_t count, std::int64_t total) {
  return static_cast<double>(count) / static_cast<double>(total);
}

TaskComparison compare_task(const TaskPair& pair, double margin) {
  TaskComparison task;
  task.task = pair.a->task;
  task.metric = pair.a->primary_metric;
  task.counts = count_right(pair.instances);
  task.n = task.counts.total();
  task.accuracy_a = share(task.counts.both_right + task.counts.only_a_right, task.n);
  task.accuracy_b = share(task.counts.both_right + task.counts.only_b_right, task.n);
  task.difference = accuracy_difference(task.counts);
  task.interval95 = paired_interval(task.counts, 0.95);
  task.p = mcnemar_mid_p(task.counts);
  task.equivalence = paired_equivalence(task.counts, margin);
  const double seen = share(task.counts.discordant(), task.n);
  task.detectable = detectable_difference(seen, task.n);
  task.needed_n = instances_to_certify(seen, margin);
  task.agreement = score_agreement(pair);
  return task;
}

/// Counts the task's flips and appends them.
void find_flips(const TaskPair& pair, Kind kind, TaskComparison& task,
                std::vector<FlipPlace>& places) {
  // Where the sides rank by another metric, or ask in another way, other answers tell nothing.
  if (conflicts(pair.a->primary_metric, pair.b->primary_metric) ||
      conflicts(pair.a->convention, pair.b->convention))
    return;
  if (kind == Kind::kCheckpoint) task.noise = flip_noise(pair);
  for (const InstancePair& instance : pair.instances) {
    if (instance.a->chosen == instance.b->chosen) continue;
    const bool explained = explains(task.noise, instance);
    ++task.flips;
    task.explained_flips += explained;
    places.push_back({&pair, instance, explained});
  }
}

std::string noise_source(Kind kind, double noise) {
  if (kind != Kind::kCheckpoint)
    return "The weights are not known to be the same, so numeric noise explains no flip.";
  if (noise == 0)
    return "Where both sides chose the same option the margins have the same value, so noise "
           "explains no flip.";
  return "In each task 99.9 % of the instances for which both sides chose the same option moved "
         "their margin by at most the noise; a flip is explained if its two margins sum to at most "
         "twice that.";
}

Interval macro_interval95(const std::vector<TaskPair>& pairs,
                          const std::vector<PairedCounts>& counts) {
  std::vector<std::vector<double>> differences;
  for (const TaskPair& pair : pairs) {
    auto& of_task = differences.emplace_back();
    for (const auto& [a, b] : pair.instances)
      of_task.push_back(static_cast<double>(b->right()) - static_cast<double>(a->right()));
  }
  std::vector<Stratum> strata;
  for (const auto& of_task : differences) strata.push_back({of_task, {}});
  const auto bootstrap = bootstrap_mean_of_strata(strata);
  if (!bootstrap || bootstrap->resampled.front() == bootstrap->resampled.back())
    return macro_interval(counts, 0.95);
  return bootstrap->interval(0.95);
}

/// McNemar's test, of the mean over the tasks: without a difference each discordant pair of a task
/// with n instances adds ±1/n with equal chance.
std::optional<double> macro_p(const std::vector<PairedCounts>& tasks) {
  double sum = 0, variance = 0;
  std::int64_t discordant = 0;
  for (const PairedCounts& counts : tasks) {
    const auto n = static_cast<double>(counts.total());
    sum += static_cast<double>(counts.net()) / n;
    variance += static_cast<double>(counts.discordant()) / (n * n);
    discordant += counts.discordant();
  }
  if (discordant < kFewestDiscordant) return std::nullopt;
  return 2 * normal_cdf(-std::abs(sum) / std::sqrt(variance));
}

MacroComparison compare_macro(const std::vector<TaskPair>& pairs,
                              const std::vector<TaskComparison>& tasks, const Margins& margins) {
  MacroComparison macro;
  std::vector<PairedCounts> counts;
  for (const TaskComparison& task : tasks) {
    macro.accuracy_a += task.accuracy_a / static_cast<double>(tasks.size());
    macro.accuracy_b += task.accuracy_b / static_cast<double>(tasks.size());
    counts.push_back(task.counts);
  }
  macro.equivalence = macro_equivalence(counts, margins.macro.value / kPoints);
  macro.p = macro_p(counts);
  macro.difference = macro.equivalence.estimate;
  macro.interval95 = macro_interval95(pairs, counts);
  return macro;
}

void adjust_for_all_tasks(std::vector<TaskComparison>& tasks) {
  std::vector<double> p;
  for (const TaskComparison& task : tasks) p.push_back(task.p);
  const auto adjusted = holm_adjusted(p);
  for (std::size_t i = 0; i < tasks.size(); ++i) tasks[i].holm_p = adjusted[i];
}

double all_pass_p(const TasksComparison& comparison) {
  if (!comparison.invalid.empty() || !comparison.mismatched.empty()) return 1;
  std::vector<double> p;
  for (const TaskComparison& task : comparison.tasks) p.push_back(task.equivalence.p);
  if (comparison.macro) p.push_back(comparison.macro->equivalence.p);
  return intersection_union_p(p);
}

}  // namespace

TasksComparison compare_tasks(const EvaluationData& a, const EvaluationData& b, Kind kind,
                              const Margins& margins) {
  TasksComparison comparison;
  Findings findings;
  const std::vector<TaskPair> pairs = match_tasks(a, b, TaskMetric::kAccuracy, findings);
  comparison.invalid = std::move(findings.invalid);
  comparison.mismatched = std::move(findings.mismatched);
  std::vector<FlipPlace> places;
  for (const TaskPair& pair : pairs) {
    TaskComparison& task =
        comparison.tasks.emplace_back(compare_task(pair, margins.task.value / kPoints));
    find_flips(pair, kind, task, places);
    comparison.noise = std::max(comparison.noise, task.noise);
    comparison.all_flips += task.flips;
    comparison.all_explained += task.explained_flips;
  }
  comparison.noise_source = noise_source(kind, comparison.noise);
  comparison.flips = list_flips(std::move(places));
  if (comparison.tasks.empty()) return comparison;
  adjust_for_all_tasks(comparison.tasks);
  if (comparison.tasks.size() > 1)
    comparison.macro = compare_macro(pairs, comparison.tasks, margins);
  comparison.all_pass_p = all_pass_p(comparison);
  if (kind == Kind::kCheckpoint) comparison.score_tests = score_tests(pairs, numeric_noise(a, b));
  return comparison;
}

}  // namespace olmo::report
