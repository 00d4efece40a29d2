#include "serve/run_set.h"

#include <algorithm>
#include <map>

#include "core/process/waiting_threads.h"
#include "core/text/text.h"
#include "page/chart.h"
#include "page/html.h"
#include "serve/site.h"
#include "store/evaluations/evaluation_labels.h"

namespace olmo::serve {
namespace {

using store::OpenMode;
using store::RecordDatabase;

std::vector<std::string> keys_of(const Request& request) {
  std::vector<std::string> keys = request.parts;
  for (const auto& key : request.values("run"))
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  return keys;
}

ChosenRun in_place_of_run(const LoneEvaluation& evaluation) {
  ChosenRun chosen{.entry = {.key = evaluation.key,
                             .database = evaluation.database,
                             .place = evaluation.place,
                             .summary = {}},
                   .label = {},
                   .look = {},
                   .records = nullptr,
                   .problem = {},
                   .evaluation_id = evaluation.entry.evaluation_id};
  auto& run = chosen.entry.summary.run;
  run.run_id = evaluation.entry.evaluation_id;
  run.name = store::model_of(evaluation.entry);
  chosen.entry.now.state = store::status_text(evaluation.entry.status);
  return chosen;
}

/// Nothing: `set` got a sentence that says why.
std::optional<ChosenRun> chosen(const Listing& known, const std::string& key, Members members,
                                RunSet& set) {
  if (const RunEntry* run = known.find(key))
    return ChosenRun{.entry = *run, .label = {}, .look = {}, .records = nullptr, .problem = {}};
  const LoneEvaluation* evaluation = known.find_evaluation(key);
  if (evaluation != nullptr && members == Members::kRunsAndEvaluations)
    return in_place_of_run(*evaluation);
  set.sentences.push_back(evaluation != nullptr
                              ? "The evaluation of " +
                                    page::clip(store::model_of(evaluation->entry), 120) +
                                    " belongs to no run, so it is not on this page."
                              : known.why_absent(key));
  return std::nullopt;
}

void name_runs(std::vector<ChosenRun>& runs) {
  std::map<std::string, int> times;
  for (const auto& run : runs) ++times[run.entry.name()];
  for (auto& run : runs) {
    run.label = run.entry.title();
    if (!run.entry.name().empty() && times[run.entry.name()] > 1)
      run.label += " (" + run.entry.summary.run.run_id + ")";
  }
}

/// By their order, first without dashes and then with them: a run keeps its look whatever is hidden
/// or added behind it, and on each page of the same runs.
void give_looks(std::vector<ChosenRun>& runs) {
  for (std::size_t i = 0; i < runs.size(); ++i)
    runs[i].look =
        page::curve_look(i % page::kCurveColours, i / page::kCurveColours % page::kCurveDashes);
}

}  // namespace

RunSet chosen_runs(Catalog& catalog, const Request& request, Members members) {
  RunSet set;
  auto keys = keys_of(request);
  if (keys.empty()) throw NotFound("The address names no run: /curves?run=KEY&run=KEY.");
  if (keys.size() > kMostRuns) {
    set.sentences.push_back("The address names " + std::to_string(keys.size()) +
                            " runs; the first " + std::to_string(kMostRuns) + " are shown.");
    keys.resize(kMostRuns);
  }
  const auto known = catalog.listing_with(keys);
  for (const auto& key : keys) {
    if (auto run = chosen(*known, key, members, set)) set.runs.push_back(*std::move(run));
  }
  const auto open = [&](std::size_t i) {
    ChosenRun& run = set.runs[i];
    try {
      run.records = std::make_unique<RecordDatabase>(run.entry.database, OpenMode::kGlance);
    } catch (const std::exception& error) {
      run.problem = error.what();
    }
  };
  for_each_while_waiting(set.runs.size(), open, kReaders);
  if (set.runs.empty()) throw NotFound(set.sentences.back());
  name_runs(set.runs);
  give_looks(set.runs);
  return set;
}

std::vector<store::EvaluationEntry> evaluations_of(const ChosenRun& run) {
  const store::EvaluationDb db(*run.records);
  if (run.is_run()) return db.list(run.entry.summary.run.run_id);
  return {db.entry(run.evaluation_id)};
}

Query query_of(const RunSet& set) {
  Query query;
  for (const auto& run : set.runs) query["run"].push_back(run.entry.key);
  return query;
}

std::vector<Link> set_tabs(const RunSet& set, const std::string& here) {
  const bool has_runs = std::ranges::any_of(set.runs, &ChosenRun::is_run);
  if (set.runs.size() == 1 && has_runs) return run_tabs(set.runs.front().entry, "/" + here);
  std::vector<Link> tabs;
  if (set.runs.size() == 1)
    return {{.text = "Evaluation",
             .address = "/evaluation/" + url_encoded(set.runs.front().entry.key),
             .here = true}};
  const Query query = query_of(set);
  const auto add = [&](const char* text, const std::string& page) {
    tabs.push_back({.text = text, .address = address_of("/" + page, query), .here = page == here});
  };
  if (has_runs) {
    add("Curves", "curves");
    add("Configs", "compare");
  }
  add("Evaluations", "evaluations");
  if (set.runs.size() == 2) add("Parity", "parity");
  return tabs;
}

std::string title_of(const RunSet& set) {
  if (set.runs.size() == 1) return set.runs.front().label;
  const auto runs = std::ranges::count_if(set.runs, &ChosenRun::is_run);
  const auto evaluations = static_cast<std::int64_t>(set.runs.size()) - runs;
  std::string title = runs > 0 ? counted(runs, "run") : "";
  if (evaluations > 0) title += (runs > 0 ? " and " : "") + counted(evaluations, "evaluation");
  return title;
}

Frame set_frame(const RunSet& set, const std::string& what, const std::string& here) {
  return {.title = what + ": " + title_of(set),
          .heading = what + " of " + title_of(set),
          .tabs = set_tabs(set, here),
          .wide = true};
}

std::string problems_html(const RunSet& set) {
  std::vector<std::string> sentences = set.sentences;
  for (const auto& run : set.runs)
    if (!run.problem.empty()) sentences.push_back(run.label + ": " + run.problem);
  return sentences.empty() ? "" : page::element("div", "caveats", page::list_of(sentences)) + "\n";
}

}  // namespace olmo::serve
