#include "serve/evaluations.h"

#include <algorithm>

#include "core/error.h"
#include "page/html.h"
#include "report/evaluations/evaluation_scores.h"
#include "report/page/sections.h"
#include "report/record/recorded_evaluation.h"
#include "serve/lone_evaluations.h"
#include "serve/run_set.h"
#include "store/evaluations/evaluation_db.h"
#include "store/evaluations/evaluation_labels.h"

namespace olmo::serve {
namespace {

using page::escape;
using report::EvaluationScores;
using report::Score;

/// A run of the page with what its checkpoints scored.
struct ScoredRun {
  const ChosenRun* run = nullptr;
  std::vector<EvaluationScores> evaluations;
};

/// What was altered is told among the sentences of the set.
std::vector<ScoredRun> read_runs(RunSet& set, KnownSeals& seals) {
  std::vector<ScoredRun> scored;
  for (ChosenRun& run : set.runs) {
    if (!run.records) continue;
    try {
      auto evaluations = report::read_scores(*run.records, evaluations_of(run));
      for (EvaluationScores& each : evaluations) {
        report::set_damage(each, seals.altered(*run.records, each.evaluation_id));
        for (const auto& sentence :
             report::damage_at_step(each.evaluation_id, each.step, each.damage))
          set.sentences.push_back(run.label + ": " + sentence + ". Its scores are not shown.");
      }
      scored.push_back({&run, std::move(evaluations)});
    } catch (const Error& error) {
      run.problem = error.what();
    }
  }
  return scored;
}

std::string link(const std::string& address, const std::string& text) {
  return "<a href=\"" + escape(address) + "\">" + escape(text) + "</a>";
}

std::string interval_of(const Score& score) {
  if (!score.interval95) return "–";
  return report::page::score_text(score, score.interval95->low) + " to " +
         report::page::score_text(score, score.interval95->high);
}

/// The evaluation of a run that has this task: at a step, or the last one; null: it has none.
const EvaluationScores* evaluation_of(const ScoredRun& scored, const std::string& task,
                                      std::optional<std::int64_t> step) {
  const EvaluationScores* found = nullptr;
  for (const auto& evaluation : scored.evaluations)
    if ((!step || evaluation.step == step) &&
        std::ranges::find(evaluation.scores, task, &Score::task) != evaluation.scores.end())
      found = &evaluation;
  return found;
}

/// The instances of a task, beside those of the first run's at the same step; of two that stand for
/// themselves the steps say nothing.
std::string instances_link(const ScoredRun& scored, const EvaluationScores& evaluation,
                           const Score& score, const ScoredRun& first) {
  if (!score.scope.empty() || score.metric == "ppl") return "";
  Query query = {{"run", {scored.run->entry.key}},
                 {"evaluation", {evaluation.evaluation_id}},
                 {"task", {score.task}}};
  std::string html = link(address_of("/instances", query), "instances");
  if (&scored == &first) return html;
  const bool by_step = scored.run->is_run() && first.run->is_run();
  const auto* other =
      evaluation_of(first, score.task, by_step ? evaluation.step : std::optional<std::int64_t>());
  if (other == nullptr) return html;
  query["with_run"] = {first.run->entry.key};
  query["with"] = {other->evaluation_id};
  return html + ", " + link(address_of("/instances", query), "flips");
}

std::string score_table(const std::vector<ScoredRun>& runs) {
  const bool several = runs.size() > 1;
  std::vector<page::Column> columns = {{"Task", false}, {"Metric", false}};
  if (several) columns.push_back({"Run", false});
  for (const char* title : {"Step", "n", "Score", "95 % interval"})
    columns.push_back({title, true});
  columns.push_back({"Evaluated", false});
  columns.push_back({"Look at", false});
  std::vector<std::pair<std::string, std::vector<std::string>>> rows;  // by task and metric
  for (const ScoredRun& scored : runs) {
    for (const EvaluationScores& evaluation : scored.evaluations) {
      for (const Score& score : evaluation.scores) {
        std::vector<std::string> cells = {
            page::shown(score.task + (score.scope.empty() ? "" : ", " + score.scope), 120),
            page::shown(score.metric + (score.is_share ? ", %" : ""), 60)};
        if (several) cells.push_back(page::shown(scored.run->label, 60));
        cells.push_back(evaluation.step ? page::count(*evaluation.step) : "–");
        cells.push_back(page::count(score.n));
        cells.push_back(report::page::score_text(score, score.value));
        cells.push_back(interval_of(score));
        cells.push_back(page::shown(evaluation.created_utc.substr(0, 16), 40));
        cells.push_back(instances_link(scored, evaluation, score, runs.front()));
        rows.emplace_back(
            score.task + "\n" + score.convention + "\n" + score.scope + "\n" + score.metric,
            std::move(cells));
      }
    }
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  page::Table table(columns);
  for (const auto& [name, cells] : rows) table.row(cells);
  return table.empty() ? "" : table.html();
}

std::string unfinished(const std::vector<ScoredRun>& runs) {
  std::vector<std::string> problems;
  for (const ScoredRun& scored : runs) {
    for (const EvaluationScores& evaluation : scored.evaluations) {
      const std::string name = scored.run->label + ", evaluation " + evaluation.evaluation_id;
      if (evaluation.status != "finished")
        problems.push_back(name + " is " + store::status_text(evaluation.status));
      for (const auto& problem : evaluation.problems) problems.push_back(name + ": " + problem);
    }
  }
  return problems.empty() ? "" : page::section("open", "Not finished", page::list_of(problems));
}

Response evaluations_page(Catalog& catalog, const Request& request) {
  constexpr std::size_t kCharts = 200;
  RunSet set = chosen_runs(catalog, request, Members::kRunsAndEvaluations);
  const auto runs = read_runs(set, catalog.seals());
  std::vector<report::page::ScoredSide> sides;
  for (const ScoredRun& scored : runs)
    sides.push_back({{scored.run->look.c_str(), scored.run->label}, scored.evaluations});
  const std::string table = score_table(runs);
  const auto listing = catalog.listing(std::chrono::milliseconds(0));
  const auto* lone =
      set.runs.size() == 1 ? listing->find_evaluation(set.runs.front().entry.key) : nullptr;
  std::string body = problems_html(set) +
                     (lone != nullptr ? evaluation_facts_html(*listing, *lone) : "") +
                     report::page::score_charts(sides, kCharts, "h2");
  if (!table.empty())
    body += page::section("scores", "Scores", table) + page::note(report::page::kAboutScores);
  body += unfinished(runs);
  if (std::ranges::all_of(runs, [](const auto& scored) { return scored.evaluations.empty(); }))
    body += page::note("No evaluation of " +
                       std::string(set.runs.size() == 1 ? "this run" : "these runs") +
                       " is recorded; <code>olmo-harness eval RUN</code> makes one.");
  Frame frame = set_frame(set, "Evaluations", "evaluations");
  if (lone != nullptr) frame.heading = "Evaluation of " + title_of(set);
  return html_response(framed(frame, body));
}

}  // namespace

void add_evaluations(Routes& routes, Catalog& catalog) {
  const auto page = [&catalog](const Request& request) {
    return evaluations_page(catalog, request);
  };
  routes.add("/evaluations", page);
  routes.add("/run/{}/evaluations", page);
  routes.add("/evaluation/{}", page);
}

}  // namespace olmo::serve
