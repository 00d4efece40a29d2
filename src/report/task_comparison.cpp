#include "report/task_comparison.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>

#include "core/error.h"
#include "report/evaluation_match.h"
#include "report/stats/bootstrap.h"
#include "report/stats/interval.h"
#include "report/stats/paired_outcomes.h"
#include "report/task_flips.h"

namespace olmo::report {
namespace {

constexpr double kLargestMargin = 0.5;
constexpr double kAgreementDeviations = 1.96;

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

template <typename Visit>
void for_each_option(const TaskPair& task, const Visit& visit) {
  for (const auto& [a, b] : task.instances) {
    const auto scores_a = logprobs_of(*task.a, *a), scores_b = logprobs_of(*task.b, *b);
    for (std::size_t i = 0; i < scores_a.size(); ++i) visit(scores_a[i], scores_b[i]);
  }
}

ScoreAgreement score_agreement(const TaskPair& task) {
  ScoreAgreement agreement;
  double sum = 0, squares = 0;
  for_each_option(task, [&](double a, double b) {
    ++agreement.options;
    agreement.equal_bits += std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
    agreement.largest = std::max(agreement.largest, std::abs(b - a));
    sum += b - a;
  });
  const auto options = static_cast<double>(agreement.options);
  agreement.mean = sum / options;
  for_each_option(task, [&](double a, double b) {
    const double rest = b - a - agreement.mean;
    squares += rest * rest;
  });
  if (agreement.options > 1) agreement.standard_deviation = std::sqrt(squares / (options - 1));
  agreement.low = agreement.mean - kAgreementDeviations * agreement.standard_deviation;
  agreement.high = agreement.mean + kAgreementDeviations * agreement.standard_deviation;
  return agreement;
}

double floor_of(const std::string& task, const std::vector<DiscordanceFloor>& floors) {
  for (const DiscordanceFloor& floor : floors)
    if (floor.task == task) return floor.share;
  return 0;
}

double share(std::int64_t count, std::int64_t total) {
  return static_cast<double>(count) / static_cast<double>(total);
}

TaskComparison compare_task(const TaskPair& pair, const std::vector<DiscordanceFloor>& floors) {
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
  task.discordance_floor = floor_of(task.task, floors);
  const double margin = capped_task_margin(task.n, task.discordance_floor);
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

MacroComparison compare_macro(const std::vector<TaskPair>& pairs,
                              const std::vector<TaskComparison>& tasks) {
  MacroComparison macro;
  std::vector<PairedCounts> counts;
  std::vector<double> floors;
  std::vector<std::int64_t> n;
  for (const TaskComparison& task : tasks) {
    macro.accuracy_a += task.accuracy_a / static_cast<double>(tasks.size());
    macro.accuracy_b += task.accuracy_b / static_cast<double>(tasks.size());
    counts.push_back(task.counts);
    floors.push_back(task.discordance_floor);
    n.push_back(task.n);
  }
  macro.equivalence = macro_equivalence(counts, macro_margin(floors, n));
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

/// Raises the floors to the discordance of two repeats.
void raise_floors(const EvaluationData& a, const EvaluationData& b,
                  std::map<std::string, double>& floors) {
  Findings ignored;
  for (const TaskPair& pair : match_tasks(a, b, TaskMetric::kAccuracy, ignored)) {
    if (conflicts(pair.a->definition_digest, pair.b->definition_digest) ||
        conflicts(pair.a->data_digest, pair.b->data_digest))
      continue;
    const PairedCounts counts = count_right(pair.instances);
    double& floor = floors[pair.a->task];
    floor = std::max(floor, share(counts.discordant(), counts.total()));
  }
}

}  // namespace

double capped_task_margin(std::int64_t n, double d0) {
  return std::min(task_margin(n, d0), kLargestMargin);
}

double macro_margin(std::span<const double> d0, std::span<const std::int64_t> n) {
  if (n.empty() || d0.size() != n.size())
    throw Error(ErrorKind::kUsage,
                "macro_margin: one share and one count for each task, received " +
                    std::to_string(d0.size()) + " and " + std::to_string(n.size()));
  double variance = 0;
  for (std::size_t i = 0; i < n.size(); ++i) variance += d0[i] / static_cast<double>(n[i]);
  const auto tasks = static_cast<double>(n.size());
  return capped_task_margin(1, variance / (tasks * tasks));
}

TasksComparison compare_tasks(const EvaluationData& a, const EvaluationData& b, Kind kind,
                              const std::vector<DiscordanceFloor>& floor) {
  TasksComparison comparison;
  Findings findings;
  const std::vector<TaskPair> pairs = match_tasks(a, b, TaskMetric::kAccuracy, findings);
  comparison.invalid = std::move(findings.invalid);
  comparison.mismatched = std::move(findings.mismatched);
  std::vector<FlipPlace> places;
  for (const TaskPair& pair : pairs) {
    TaskComparison& task = comparison.tasks.emplace_back(compare_task(pair, floor));
    find_flips(pair, kind, task, places);
    comparison.noise = std::max(comparison.noise, task.noise);
    comparison.all_flips += task.flips;
    comparison.all_explained += task.explained_flips;
  }
  comparison.noise_source = noise_source(kind, comparison.noise);
  comparison.flips = list_flips(std::move(places));
  if (comparison.tasks.empty()) return comparison;
  adjust_for_all_tasks(comparison.tasks);
  if (comparison.tasks.size() > 1) comparison.macro = compare_macro(pairs, comparison.tasks);
  comparison.all_pass_p = all_pass_p(comparison);
  return comparison;
}

std::vector<DiscordanceFloor> discordance_floor(const std::vector<EvaluationData>& repeats) {
  std::map<std::string, double> shares;
  for (std::size_t i = 0; i < repeats.size(); ++i)
    for (std::size_t j = i + 1; j < repeats.size(); ++j)
      raise_floors(repeats[i], repeats[j], shares);
  std::vector<DiscordanceFloor> floors;
  for (const auto& [task, share_of] : shares) floors.push_back({task, share_of});
  return floors;
}

}  // namespace olmo::report
