// `olmo-harness runs show|tag`: what the run databases hold.
#include <iostream>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/named_record.h"
#include "cli/run_row.h"
#include "cli/screen/table.h"
#include "core/error.h"
#include "core/files/json.h"
#include "core/files/recorded_json.h"
#include "core/process/activity.h"
#include "core/process/terminal.h"
#include "monitor/run_view.h"
#include "store/evaluations/evaluation_db.h"
#include "store/runs/run_db.h"

namespace olmo::cli {
namespace {

using store::OpenMode;
using store::RunDb;
using store::SqlValue;
using OrderedJson = nlohmann::ordered_json;

/// Collects the rows that a function of the store gives to its last argument.
template <class Read, class... Arguments>
OrderedJson rows_of(const Read& read, const Arguments&... arguments) {
  OrderedJson rows = OrderedJson::array();
  read(arguments...,
       [&](const auto& names, const auto& values) { rows.push_back(row_json(names, values)); });
  return rows;
}

/// The evaluations that belong to a run, oldest first.
OrderedJson evaluations_of(RunDb& db, const std::string& run_id) {
  const store::EvaluationDb evaluations(db.records());
  OrderedJson rows = OrderedJson::array();
  for (const auto& entry : evaluations.list(run_id)) {
    OrderedJson row = {{"evaluation_id", entry.evaluation_id}, {"step", nullptr}};
    if (entry.record.step) row["step"] = *entry.record.step;
    row["status"] = entry.status;
    std::string tasks;
    for (const auto& task : evaluations.tasks(entry.evaluation_id))
      tasks += (tasks.empty() ? "" : " ") + task.record.task;
    row["tasks"] = tasks;
    row["checkpoint"] = entry.record.checkpoint;
    row["weights_digest"] = entry.record.weights_digest;
    rows.push_back(std::move(row));
  }
  return rows;
}

struct RunsArguments {
  std::string run;
  std::vector<std::string> tags;
  bool json = false;
  bool remove = false;
};

/// Of the last attempt.
OrderedJson ranks_of_last(const OrderedJson& ranks) {
  OrderedJson last = OrderedJson::array();
  for (const auto& rank : ranks)
    if (rank["attempt"] == ranks.back()["attempt"]) last.push_back(rank);
  return last;
}

/// What a record holds as JSON; its text where that is damaged.
OrderedJson json_or_text(const std::string& text) {
  auto json = recorded_json<OrderedJson>(text);
  return json.is_discarded() ? OrderedJson(text) : json;
}

/// Whether the run goes on, as far as can be seen from here.
void add_state(OrderedJson& shown, const RunDb& db, const store::RunRecord& run) {
  const auto now =
      monitor::judge(db.records(), run.run_id, run.status, run.experiment_digest.empty());
  shown["state"] = now.state;
  shown["state_reason"] = now.reason.empty() ? OrderedJson() : OrderedJson(now.reason);
}

/// Whether its figures are to be believed; a person is warned if not.
void add_check(OrderedJson& shown, const RunDb& db, const std::string& run) {
  const auto check = warn_of_record(db.records(), run);
  shown["record"] = report::to_string(check.state);
  shown["record_reason"] = report::reason_json(check);
}

/// All that the record has of a run but its steps.
OrderedJson read_all_of(RunDb& db, const std::string& run) {
  const auto of_run = [&](const char* table) {
    return rows_of(store::for_each_row, db, table, run, false);
  };
  const auto record = db.run(run);
  OrderedJson shown = overview_json(store::read_overview(db.records(), run));
  add_state(shown, db, record);
  add_check(shown, db, run);
  shown["config"] = json_or_text(record.config);
  shown["attempts"] = of_run("attempts");
  for (auto& attempt : shown["attempts"]) {
    for (const char* key : {"policy", "build", "environment"})
      if (attempt[key].is_string()) attempt[key] = json_or_text(attempt[key].get<std::string>());
  }
  shown["ranks"] = ranks_of_last(of_run("ranks"));
  shown["inputs"] = of_run("inputs");
  shown["checkpoints"] = of_run("checkpoints");
  shown["metrics"] = rows_of(store::for_each_metric, db, run);
  shown["evaluations"] = evaluations_of(db, run);
  shown["events"] = of_run("events");
  return shown;
}

void show(const RunsArguments& options) {
  const auto name = store::parse_run_name(options.run);
  RunDb db = RunDb::open(name.database, OpenMode::kReadOnly);
  const std::string run = find_named_run(db, name);
  const OrderedJson shown =
      during("reading the record of " + options.run, [&] { return read_all_of(db, run); });
  if (options.json) {
    std::cout << json_text(shown, 2) << "\n";
    return;
  }
  for (const char* key :
       {"run_id", "name", "status", "created_utc", "n_parameters", "step", "max_steps", "tokens",
        "ce_loss", "tokens_per_second", "chain_hash", "tags"}) {
    std::cout << key << ": " << text_of(shown[key]) << "\n";
    // What is recorded, and what can be seen of it.
    if (std::string_view(key) == "status" && shown["state"] != shown["status"])
      std::cout << "state: " << text_of(shown["state"])
                << (shown["state_reason"].is_null() ? "" : ", " + text_of(shown["state_reason"]))
                << "\n";
  }
  for (const auto& [title, columns] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"attempts",
            {"attempt", "started_utc", "outcome", "start_step", "world_size", "strategy", "launch",
             "resumed_from"}},
           {"ranks",
            {"rank", "host", "device", "threads", "steps", "data_seconds", "compute_seconds",
             "gather_seconds", "exchange_seconds", "save_seconds", "wait_seconds",
             "slowest_steps"}},
           {"inputs", {"kind", "path", "bytes", "sha256"}},
           {"checkpoints", {"step", "path", "bytes", "seconds", "stall_seconds", "deleted_utc"}},
           {"metrics", {"name", "points", "last_step", "last"}},
           {"evaluations", {"evaluation_id", "step", "status", "tasks"}},
           {"events", {"utc", "step", "kind", "message"}}}) {
    std::cout << "\n" << title << "\n";
    TextTable table(columns);
    for (const auto& row : shown[title]) {
      std::vector<std::string> cells;
      // A record of an older schema lacks the columns that were added since.
      for (const auto& column : columns) cells.push_back(text_of(row.value(column, OrderedJson())));
      table.add(std::move(cells));
    }
    table.print(std::cout);
  }
}

void tag(const RunsArguments& options) {
  const auto name = store::parse_run_name(options.run);
  RunDb db = RunDb::open(name.database, OpenMode::kReadWrite);
  const std::string run = find_named_run(db, name);
  for (const auto& word : options.tags) db.tag(run, word, options.remove);
  const OrderedJson shown = overview_json(store::read_overview(db.records(), run));
  const std::string tags = text_of(shown["tags"]);
  std::cout << "run " << run << " (" << text_of(shown["name"]) << ") "
            << (tags.empty() ? "has no tags" : "is tagged " + tags) << "\n";
}

}  // namespace

void add_runs(const Command& program, const char* group) {
  const Command runs =
      program.add("runs", "List, show, watch, compare, export, import and tag runs", group);
  runs.footer(
      "A RUN is FILE.db (its only or latest run), FILE.db:RUN_ID (a prefix will do) or a run "
      "folder.\nExample: olmo-harness runs list runs/quickstart");
  auto& options = runs.options<RunsArguments>();

  add_runs_list(runs);

  const Command showing =
      runs.add("show", "Show a run: starts, inputs, checkpoints, metrics, evaluations, events");
  showing.run(options.run);
  showing.json(options.json);
  showing.footer("Example: olmo-harness runs show runs/quickstart/run.db");
  showing.action([&options] { show(options); });

  add_runs_diff(runs);

  add_runs_export(runs);
  add_runs_watch(runs);
  add_runs_import(runs);

  const Command tagging = runs.add("tag", "Add words to a run, by which reports can find it");
  tagging.run(options.run);
  tagging.option("TAG", options.tags, "Words to add, such as noise:seed").required();
  tagging.flag("--remove", options.remove, "Remove the words instead");
  tagging.footer("Example: olmo-harness runs tag run.db seed-repeat");
  tagging.action([&options] { tag(options); });
}

}  // namespace olmo::cli
