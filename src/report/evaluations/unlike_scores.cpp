#include "report/evaluations/unlike_scores.h"

#include <algorithm>
#include <optional>
#include <set>

#include "core/text/number.h"
#include "report/evaluations/evaluation_match.h"
#include "report/evaluations/named_evaluations.h"

namespace olmo::report {
namespace {

/// The first task or suite of `names` that differs in a bit; empty: none does.
std::string first_unlike(const EvaluationData& a, const EvaluationData& b,
                         const std::set<std::string>& names) {
  std::set<std::string> unlike;
  Findings ignored;
  for (const auto metric : {TaskMetric::kAccuracy, TaskMetric::kCost})
    for (const TaskPair& pair : match_tasks(a, b, metric, ignored))
      if (!std::ranges::equal(pair.a->logprobs, pair.b->logprobs, same_bits))
        unlike.insert(pair.a->task);
  for (const SuitePair& pair : match_suites(a, b, true, ignored))
    if (!std::ranges::all_of(pair.documents, [](const DocumentPair& documents) {
          return same_bits(documents.a->nll, documents.b->nll);
        }))
      unlike.insert(pair.a->suite);
  const std::set<std::string> found = in_both(unlike, names);
  return found.empty() ? "" : *found.begin();
}

}  // namespace

UnlikeScores scores_that_differ(const SideRecords& a, const SideRecords& b) {
  UnlikeScores found;
  std::optional<std::pair<std::int64_t, std::string>> first;
  std::set<std::string> damage_a, damage_b;  // an evaluation may be read for several of the other
  const auto add = [](const EvaluationData& data, std::set<std::string>& damage) {
    const auto sentences = damage_at_step(data.evaluation_id, data.step, data.damage);
    damage.insert(sentences.begin(), sentences.end());
  };
  const auto of_a = named_evaluations(a), of_b = named_evaluations(b);
  for (const NamedEvaluation& x : of_a) {
    const std::int64_t step = x.entry->record.step.value_or(0);
    std::optional<EvaluationData> in_x;
    for (const NamedEvaluation& y : of_b) {
      if (!same_model(*x.entry, *y.entry)) continue;
      const auto alike = asked_alike(x, y);
      if (alike.empty()) continue;
      if (!in_x) in_x = read_evaluation(a, x.entry->evaluation_id);
      const auto in_y = read_evaluation(b, y.entry->evaluation_id);
      add(*in_x, damage_a);
      add(in_y, damage_b);
      const std::pair now(step, first_unlike(*in_x, in_y, alike));
      if (!now.second.empty() && (!first || now < *first)) first = now;
    }
  }
  found.damage_a.assign(damage_a.begin(), damage_a.end());
  found.damage_b.assign(damage_b.begin(), damage_b.end());
  if (first)
    found.first = "the scores of " + first->second + " at step " + std::to_string(first->first);
  return found;
}

}  // namespace olmo::report
