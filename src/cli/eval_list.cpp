// `olmo-harness eval list`: the evaluations that databases hold, of runs and of models from
// elsewhere.
#include <algorithm>
#include <iostream>
#include <set>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/given_databases.h"
#include "cli/interface/help.h"
#include "cli/screen/table.h"
#include "core/files/json.h"
#include "core/files/recorded_json.h"
#include "core/process/terminal.h"
#include "core/text/text.h"
#include "report/record/asked.h"
#include "store/evaluations/evaluation_db.h"
#include "store/evaluations/evaluation_labels.h"
#include "store/runs/recorded_run.h"

namespace olmo::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct EvalListArguments {
  std::vector<std::string> places;
  bool json = false;
};

struct ListedTask {
  std::string name, status;
  std::optional<std::int64_t> limit;
};

struct ListedEvaluation {
  std::string name;  ///< by which other commands find it
  std::string database, model;
  store::EvaluationEntry entry;
  std::vector<ListedTask> tasks;
};

/// Of a training's own evaluation, which is of no checkpoint: the run. `runs`: that are here.
std::string model_of(const store::RecordDatabase& records, const std::vector<std::string>& runs,
                     const store::EvaluationEntry& entry) {
  const auto& run = entry.record.run_id;
  if (!entry.record.checkpoint.empty() || !run) return store::model_of(entry);
  const bool is_here = std::ranges::find(runs, *run) != runs.end();
  return is_here ? store::read_run_record(records, *run).name : *run;
}

std::vector<ListedEvaluation> read_evaluations(store::RecordDatabase& records) {
  const store::EvaluationDb db(records);
  const auto runs = store::run_ids(records);
  std::vector<ListedEvaluation> found;
  for (auto& entry : db.list()) {
    ListedEvaluation listed;
    listed.name = name_of_record(records.path(), entry.evaluation_id);
    listed.database = records.path().string();
    listed.entry = std::move(entry);
    listed.model = model_of(records, runs, listed.entry);
    const report::AskedParts asked(listed.entry.record.settings);
    for (const auto& task : db.tasks(listed.entry.evaluation_id))
      listed.tasks.push_back({task.record.task, task.status, asked.of(task.record.task).limit});
    found.push_back(std::move(listed));
  }
  return found;
}

OrderedJson precision_of(const ListedEvaluation& listed) {
  const Json policy = recorded_json(listed.entry.record.policy);
  return policy.is_object() ? OrderedJson(policy.value("precision", Json())) : OrderedJson(nullptr);
}

OrderedJson to_json(const ListedEvaluation& listed) {
  const auto& entry = listed.entry;
  OrderedJson tasks = OrderedJson::array();
  for (const ListedTask& task : listed.tasks)
    tasks.push_back({{"task", task.name},
                     {"status", task.status},
                     {"limit", or_null<OrderedJson>(task.limit)}});
  return {{"evaluation", listed.name},
          {"evaluation_id", entry.evaluation_id},
          {"status", entry.status},
          {"created_utc", entry.created_utc},
          {"checkpoint", entry.record.checkpoint},
          {"weights_digest", entry.record.weights_digest},
          {"run_id", or_null<OrderedJson>(entry.record.run_id)},
          {"step", or_null<OrderedJson>(entry.record.step)},
          {"precision", precision_of(listed)},
          {"tasks", std::move(tasks)},
          {"database", listed.database}};
}

/// The first three, and how many more.
std::string names_of(const std::vector<ListedTask>& tasks) {
  constexpr std::size_t kShown = 3;
  std::vector<std::string> names;
  for (const ListedTask& task : tasks) names.push_back(task.name);
  if (names.size() <= kShown + 1) return joined(names);
  const auto others = names.size() - kShown;
  names.resize(kShown);
  return joined(names) + " and " + std::to_string(others) + " more";
}

/// How many instances of each task were scored at most.
std::string limit_of(const std::vector<ListedTask>& tasks) {
  std::set<std::optional<std::int64_t>> limits;
  for (const ListedTask& task : tasks) limits.insert(task.limit);
  if (limits.size() > 1) return "several";
  return limits.empty() || !*limits.begin() ? "" : std::to_string(**limits.begin());
}

void print_table(const std::vector<ListedEvaluation>& evaluations) {
  TextTable table(
      {"evaluation", "model", "step", "status", "tasks", "limit", "precision", "database"});
  for (const auto& listed : evaluations) {
    const auto& entry = listed.entry;
    table.add({entry.evaluation_id, listed.model,
               entry.record.step ? std::to_string(*entry.record.step) : "",
               store::status_text(entry.status), names_of(listed.tasks), limit_of(listed.tasks),
               text_of(precision_of(listed)), listed.database});
  }
  table.print(std::cout);
}

int run(const EvalListArguments& options) {
  GivenDatabases databases("eval list", options.places);
  std::vector<ListedEvaluation> evaluations;
  databases.read([&](store::RecordDatabase& records) {
    for (auto& listed : read_evaluations(records)) evaluations.push_back(std::move(listed));
  });
  if (options.json) {
    OrderedJson rows = OrderedJson::array(), unreadable = OrderedJson::array();
    for (const auto& listed : evaluations) rows.push_back(to_json(listed));
    for (const auto& failure : databases.failures()) unreadable.push_back(failure.what());
    std::cout << json_text(OrderedJson{{"evaluations", rows}, {"unreadable", unreadable}}, 2)
              << "\n";
    return databases.exit_code();
  }
  if (!evaluations.empty()) print_table(evaluations);
  std::cout.flush();  // a person reads the warnings below the table
  for (const auto& failure : databases.failures()) log_warning(failure.what());
  if (evaluations.empty() && databases.failures().empty())
    log_line("no evaluations in " + joined(options.places));
  return databases.exit_code();
}

}  // namespace

void add_eval_list(const Command& eval) {
  const Command command = eval.add("list", "List recorded evaluations, one line each");
  auto& options = command.options<EvalListArguments>();
  command.option("PLACE", options.places, kPlacesHelp).required();
  command.json(options.json);
  command.footer(
      std::string(
          "Other commands take one as DATABASE:EVALUATION. limit: of each task at most so many\n"
          "instances were scored.\n") +
      kUnreadableHelp + "Example: olmo-harness eval list olmo-1b.db runs");
  command.action([&options] { return run(options); });
}

}  // namespace olmo::cli
