// The runs that a page of several shows: those that its address names, opened to be read.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "serve/catalog.h"
#include "serve/frame.h"
#include "store/database/record_database.h"
#include "store/evaluations/evaluation_db.h"

namespace olmo::serve {

/// Runs that one page shows.
inline constexpr std::size_t kMostRuns = 100;

/// Threads that read runs. Most of them wait: a disk answers many at once.
inline constexpr std::size_t kReaders = 32;

/// A run, or an evaluation that stands in a run's place.
struct ChosenRun {
  RunEntry entry;     ///< of an evaluation its key, its database, its name and its status
  std::string label;  ///< its name, with its id where two have the same one
  std::string look;   ///< classes of colour and dashes (page/browser/style.css)
  std::unique_ptr<store::RecordDatabase> records;  ///< null: `problem` says why
  std::string problem;
  std::string evaluation_id = {};  ///< empty: it is a run

  [[nodiscard]] bool is_run() const { return evaluation_id.empty(); }
};

struct RunSet {
  std::vector<ChosenRun> runs;         ///< in the order of the address, each once
  std::vector<std::string> sentences;  ///< what of the address could not be followed
};

/// What a page can show beside runs.
enum class Members { kRuns, kRunsAndEvaluations };

/// `run=KEY`, once or more, or the run of a path such as /run/{}/curves.
RunSet chosen_runs(Catalog& catalog, const Request& request, Members members = Members::kRuns);

/// The evaluations of a run, or the one that stands for itself, oldest first. Throws as
/// store::EvaluationDb; `records` is there.
std::vector<store::EvaluationEntry> evaluations_of(const ChosenRun& run);

/// Names the runs in an address: `run=K&run=L`.
Query query_of(const RunSet& set);

/// The pages of these runs, as tabs; `here`: "curves", "compare", "evaluations".
std::vector<Link> set_tabs(const RunSet& set, const std::string& here);
/// "2 runs", or the name of the only one.
std::string title_of(const RunSet& set);
/// Of the page that shows `what` of these runs: "Evaluations of 2 runs"; `here` as in set_tabs.
Frame set_frame(const RunSet& set, const std::string& what, const std::string& here);
/// What could not be shown: sentences of the set and of its runs.
std::string problems_html(const RunSet& set);

}  // namespace olmo::serve
