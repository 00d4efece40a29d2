#include "report/evaluations/evaluation_scores.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/record/recorded_evaluation.h"
#include "report/stats/distributions.h"

namespace olmo::report {
namespace {

double normal95() { return normal_quantile(0.975); }

bool is_shown(const EvaluationMetric& metric, const store::EvaluationTaskEntry& task) {
  if (task.record.kind == "perplexity") return metric.metric == "ppl" || metric.metric == "bpb";
  return metric.scope.empty() && metric.metric == task.record.primary_metric;
}

std::optional<Interval> interval_of(const EvaluationMetric& metric, bool is_share) {
  if (!std::isfinite(metric.value) || metric.n < 1) return std::nullopt;
  if (metric.low && metric.high) return Interval{*metric.low, *metric.high};
  if (is_share) return wilson_interval(metric.value, metric.n);
  if (!metric.standard_error) return std::nullopt;
  const double half = normal95() * *metric.standard_error;
  return Interval{metric.value - half, metric.value + half};
}

Score score_of(const EvaluationMetric& metric, const store::EvaluationTaskEntry& task) {
  const bool is_share = task.record.kind != "perplexity" && !is_cost_metric(metric.metric) &&
                        metric.value >= 0 && metric.value <= 1;
  return {.task = task.record.task,
          .convention = task.record.convention,
          .scope = metric.scope,
          .metric = metric.metric,
          .n = metric.n,
          .value = metric.value,
          .is_share = is_share,
          .interval95 = interval_of(metric, is_share)};
}

EvaluationScores scores_of(const store::EvaluationDb& db, const store::EvaluationEntry& entry) {
  EvaluationScores found{.evaluation_id = entry.evaluation_id,
                         .created_utc = entry.created_utc,
                         .checkpoint = entry.record.checkpoint,
                         .status = entry.status,
                         .step = entry.record.step,
                         .scores = {},
                         .problems = {}};
  for (const auto& task : db.tasks(entry.evaluation_id)) {
    const auto before = found.scores.size();
    for (const auto& metric : db.metrics(entry.evaluation_id, task.record.task))
      if (is_shown(metric, task)) found.scores.push_back(score_of(metric, task));
    if (found.scores.size() > before && task.status == "finished") continue;
    found.problems.push_back(task.record.task + " is " + task.status +
                             (task.message.empty() ? "" : ": " + task.message));
  }
  return found;
}

}  // namespace

std::vector<EvaluationScores> read_scores(store::RecordDatabase& records,
                                          std::span<const store::EvaluationEntry> evaluations) {
  const store::EvaluationDb db(records);
  std::vector<EvaluationScores> found;
  for (const auto& entry : evaluations) found.push_back(scores_of(db, entry));
  const auto place = [](const EvaluationScores& evaluation) {
    return evaluation.step.value_or(std::numeric_limits<std::int64_t>::max());
  };
  std::stable_sort(found.begin(), found.end(),
                   [&](const auto& a, const auto& b) { return place(a) < place(b); });
  return found;
}

std::vector<EvaluationScores> read_sealed_scores(
    store::RecordDatabase& records, std::span<const store::EvaluationEntry> evaluations,
    store::SealChecks& seals) {
  auto found = read_scores(records, evaluations);
  for (EvaluationScores& evaluation : found)
    set_damage(evaluation, seals.of(records, evaluation.evaluation_id).altered);
  return found;
}

void set_damage(EvaluationScores& evaluation, const std::vector<std::string>& altered) {
  evaluation.damage = altered;
  if (!altered.empty()) evaluation.scores.clear();
}

Interval wilson_interval(double share, std::int64_t n) {
  const double z = normal95(), count = static_cast<double>(n);
  const double center = share + z * z / (2 * count);
  const double half = z * std::sqrt(share * (1 - share) / count + z * z / (4 * count * count));
  const double scale = 1 + z * z / count;
  return {std::max(0.0, (center - half) / scale), std::min(1.0, (center + half) / scale)};
}

}  // namespace olmo::report
