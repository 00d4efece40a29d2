#include "report/parity_evaluations.h"

#include <algorithm>

#include "core/text/text.h"
#include "report/evaluations/evaluation_choice.h"
#include "report/evaluations/evaluation_match.h"
#include "report/evaluations/evaluation_places.h"
#include "report/evaluations/gathered_tasks.h"

namespace olmo::report {
namespace {

/// What the evaluations of a step hold of the reference's tasks, asked in the same way; nothing
/// where no model answered all of them.
std::optional<EvaluationData> alike_at(std::optional<std::int64_t> step, const SideRecords& records,
                                       const std::vector<store::EvaluationEntry>& entries,
                                       const EvaluationData& reference) {
  for (const auto& model : by_model(step, entries)) {
    EvaluationData found = gathered_tasks(records, model, [&](const EvaluatedTask& task) {
      const EvaluatedTask* wanted = find_task(reference, task.task);
      return wanted != nullptr && asked_the_same(*wanted, task);
    });
    if (holds_the_same(reference, found)) return found;
  }
  return std::nullopt;
}

/// A sentence about an evaluation is said once, however often it is read.
void add_damage(ParityReport& report, const Side& side, const std::string& evaluation_id,
                std::optional<std::int64_t> step, const std::vector<std::string>& damage) {
  for (const auto& sentence : damage_at_step(evaluation_id, step, damage)) {
    const std::string said = side.label + ": " + sentence + ".";
    if (std::ranges::find(report.damage, said) == report.damage.end())
      report.damage.push_back(said);
  }
}

/// All that a side evaluated; what was altered is damage, also where it is shown and not compared.
std::vector<EvaluationScores> scores_of(ParityReport& report, const Side& side,
                                        const SideRecords& records) {
  auto scores = read_sealed_scores(records.database(), records.evaluations, *records.seals);
  for (const EvaluationScores& each : scores)
    if (!side.evaluation || side.evaluation->evaluation_id != each.evaluation_id)
      add_damage(report, side, each.evaluation_id, each.step, each.damage);
  return scores;
}

/// The compared place and those before it at which both runs were evaluated.
EvaluatedRuns evaluated_steps(const ParityReport& report, const SideRecords& a,
                              const SideRecords& b) {
  constexpr std::size_t kMostSteps = 5;
  EvaluatedRuns steps{{*report.a.evaluation}, {*report.b.evaluation}};
  const EvaluationPlaces places(report.a, report.b);
  auto last = steps.a[0].step;
  if (report.kind == Kind::kCheckpoint || !last || !steps.b[0].step ||
      !places.same(*last, *steps.b[0].step))
    return {};
  for (auto x = a.evaluations.rbegin(); x != a.evaluations.rend(); ++x) {
    if (steps.a.size() == kMostSteps) break;
    if (!x->record.step || !(x->record.step < last)) continue;
    last = x->record.step;
    const auto y = std::ranges::find_if(b.evaluations, [&](const auto& entry) {
      return entry.record.step && places.same(*last, *entry.record.step);
    });
    if (y == b.evaluations.end()) continue;
    auto in_a = alike_at(last, a, a.evaluations, steps.a[0]);
    auto in_b = alike_at(y->record.step, b, b.evaluations, steps.a[0]);
    if (!in_a || !in_b) continue;
    steps.a.push_back(*std::move(in_a));
    steps.b.push_back(*std::move(in_b));
  }
  return steps;
}

}  // namespace

void choose_evaluations(ParityReport& report, const SideRecords& a, const SideRecords& b,
                        const ParityOptions& options) {
  if (options.skip_evaluations) return;
  auto chosen = choose_evaluations(report.a, a, report.b, b, options.kind);
  report.a.evaluation = std::move(chosen.a);
  report.b.evaluation = std::move(chosen.b);
  if (!chosen.problem.empty()) report.damage.push_back(chosen.problem);
  report.caveats.insert(report.caveats.end(), chosen.caveats.begin(), chosen.caveats.end());
}

EvaluatedRuns evaluated_runs(ParityReport& report, const SideRecords& a, const SideRecords& b) {
  EvaluatedRuns runs;
  std::vector<std::string> without;
  if (!report.a.evaluation || !report.b.evaluation) return runs;
  runs.a.push_back(*report.a.evaluation);
  runs.b.push_back(*report.b.evaluation);
  for (const Repeat& repeat : report.noise.looked_at) {
    const bool compared = repeat.run_id == a.run_id || repeat.run_id == b.run_id;
    if (!repeat.taken || compared) continue;
    auto& of_side = repeat.side == 'A' ? runs.a : runs.b;
    const auto step = of_side[0].step;
    const auto take = [&](const SideRecords& records) {
      auto found = alike_at(step, records,
                            store::EvaluationDb(records.database()).list(repeat.run_id), runs.a[0]);
      if (!found) return false;
      of_side.push_back(*std::move(found));
      return true;
    };
    if (!take(a) && !take(b)) without.push_back(repeat.run_id);
  }
  if (!without.empty() && runs.a.size() + runs.b.size() > 2)
    report.caveats.push_back(
        "The scores of repeats are without " + joined(without) +
        ": no finished and sound evaluation of the compared step asked the same.");
  return runs;
}

void add_scores(ParityReport& report, const SideRecords& a, const SideRecords& b) {
  report.scores_a = scores_of(report, report.a, a);
  report.scores_b = scores_of(report, report.b, b);
}

void compare_evaluations(ParityReport& report, const SideRecords& a, const SideRecords& b,
                         const EvaluatedRuns& runs) {
  const EvaluationData& in_a = *report.a.evaluation;
  const EvaluationData& in_b = *report.b.evaluation;
  report.tasks = compare_tasks(in_a, in_b, report.kind, report.margins);
  report.perplexity = compare_perplexity(in_a, in_b, report.margins.bpb.value);
  if (report.tasks->tasks.empty() && report.tasks->invalid.empty() &&
      report.tasks->mismatched.empty())
    report.tasks.reset();
  const auto tests = tests_of_repeats(runs);
  report.noise.tests.insert(report.noise.tests.end(), tests.begin(), tests.end());
  report.checkpoints = test_of_checkpoints(evaluated_steps(report, a, b));
}

}  // namespace olmo::report
