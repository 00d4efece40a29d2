// `olmo-harness runs list|show|export|import|tag`: what the run databases hold.
#include <iostream>
#include <optional>
#include <sstream>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/given_path.h"
#include "cli/table.h"
#include "cli/usage.h"
#include "core/error.h"
#include "core/json.h"
#include "core/output_file.h"
#include "core/terminal.h"
#include "store/evaluation_db.h"
#include "store/run_db.h"

namespace olmo::cli {
namespace {

using store::OpenMode;
using store::RunDb;
using store::SqlValue;
using OrderedJson = nlohmann::ordered_json;

OrderedJson to_json(const SqlValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return nullptr;
}

OrderedJson to_json(const std::vector<std::string>& names, const std::vector<SqlValue>& values) {
  OrderedJson object = OrderedJson::object();
  for (std::size_t i = 0; i < names.size(); ++i) object[names[i]] = to_json(values[i]);
  return object;
}

/// Collects the rows that a function of the store gives to its last argument.
template <class Read, class... Arguments>
OrderedJson rows_of(const Read& read, const Arguments&... arguments) {
  OrderedJson rows = OrderedJson::array();
  read(arguments...,
       [&](const auto& names, const auto& values) { rows.push_back(to_json(names, values)); });
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

struct Options {
  std::string run;
  std::vector<std::string> databases;
  std::string table = "steps";
  std::string format = "jsonl";
  std::string out;
  std::vector<std::string> tags;
  bool json = false;
  bool all_attempts = false;
  bool remove = false;
};

void list(const Options& options) {
  OrderedJson all = OrderedJson::array();
  TextTable table(
      {"run", "name", "status", "step", "of", "tokens", "ce_loss", "tokens/s", "evals", "tags"});
  for (const auto& path : options.databases) {
    require_run("runs list", path);
    RunDb db = RunDb::open(store::parse_run_name(path).database, OpenMode::kReadOnly);
    for (auto& row : rows_of(store::for_each_overview, db, "")) {
      row["database"] = db.path().string();
      row["evaluations"] = store::EvaluationDb(db.records()).list(row["run_id"]).size();
      table.add({text_of(row["run_id"]), text_of(row["name"]), text_of(row["status"]),
                 text_of(row["step"]), text_of(row["max_steps"]), text_of(row["tokens"]),
                 text_of(row["ce_loss"]), text_of(row["tokens_per_second"]),
                 text_of(row["evaluations"]), text_of(row["tags"])});
      all.push_back(std::move(row));
    }
  }
  if (options.json) {
    std::cout << json_text(OrderedJson{{"runs", all}}, 2) << "\n";
  } else {
    table.print(std::cout);
  }
}

/// Of the last attempt.
OrderedJson ranks_of_last(const OrderedJson& ranks) {
  OrderedJson last = OrderedJson::array();
  for (const auto& rank : ranks)
    if (rank["attempt"] == ranks.back()["attempt"]) last.push_back(rank);
  return last;
}

void show(const Options& options) {
  const auto name = store::parse_run_name(options.run);
  RunDb db = RunDb::open(name.database, OpenMode::kReadOnly);
  const std::string run = db.find_run(name.run);
  const auto of_run = [&](const char* table) {
    return rows_of(store::for_each_row, db, table, run, false);
  };
  OrderedJson shown = rows_of(store::for_each_overview, db, run).at(0);
  shown["config"] = OrderedJson::parse(db.run(run).config);
  shown["attempts"] = of_run("attempts");
  for (auto& attempt : shown["attempts"]) {
    for (const char* key : {"policy", "build", "environment"})
      attempt[key] = OrderedJson::parse(attempt[key].get<std::string>());
  }
  shown["ranks"] = ranks_of_last(of_run("ranks"));
  shown["inputs"] = of_run("inputs");
  shown["checkpoints"] = of_run("checkpoints");
  shown["metrics"] = rows_of(store::for_each_metric, db, run);
  shown["evaluations"] = evaluations_of(db, run);
  shown["events"] = of_run("events");
  if (options.json) {
    std::cout << json_text(shown, 2) << "\n";
    return;
  }
  for (const char* key :
       {"run_id", "name", "status", "created_utc", "n_parameters", "step", "max_steps", "tokens",
        "ce_loss", "tokens_per_second", "chain_hash", "tags"}) {
    std::cout << key << ": " << text_of(shown[key]) << "\n";
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
      for (const auto& column : columns) cells.push_back(text_of(row[column]));
      table.add(std::move(cells));
    }
    table.print(std::cout);
  }
}

RowWriter make_writer(const std::string& format) {
  if (format == "jsonl") {
    return [](std::ostream& out, const auto& names, const auto& values, bool) {
      out << json_text(to_json(names, values)) << "\n";
    };
  }
  if (format == "csv") return write_csv_row;
  OLMO_CHECK(format == "md");
  return write_markdown_row;
}

void export_table(const Options& options) {
  const auto write = make_writer(options.format);
  const auto name = store::parse_run_name(options.run);
  const RunDb db = RunDb::open(name.database, OpenMode::kReadOnly);
  const std::string run = db.find_run(name.run);
  std::optional<OutputFile> file;
  if (!options.out.empty()) file.emplace(options.out);
  bool first = true;
  const auto send = [&](const auto& names, const auto& values) {
    std::ostringstream row;
    write(row, names, values, first);
    first = false;
    if (file) {
      file->append(row.str());
    } else {
      std::cout << row.str();
    }
  };
  store::for_each_row(db, options.table, run, options.all_attempts, send);
  if (file) file->publish();
  if (!options.out.empty()) log_line("wrote " + options.out);
}

void tag(const Options& options) {
  const auto name = store::parse_run_name(options.run);
  RunDb db = RunDb::open(name.database, OpenMode::kReadWrite);
  const std::string run = db.find_run(name.run);
  for (const auto& word : options.tags) db.tag(run, word, options.remove);
  const OrderedJson shown = rows_of(store::for_each_overview, db, run).at(0);
  const std::string tags = text_of(shown["tags"]);
  std::cout << "run " << run << " (" << text_of(shown["name"]) << ") "
            << (tags.empty() ? "has no tags" : "is tagged " + tags) << "\n";
}

}  // namespace

void add_runs(const Command& program, const char* group) {
  const Command runs =
      program.add("runs", "List, show, export, import and tag the runs of databases", group);
  runs.footer(
      "A RUN is FILE.db (its only or latest run), FILE.db:RUN_ID (a prefix will do) or a run "
      "directory.\nExample: olmo-harness runs list runs/quickstart");
  auto& options = runs.options<Options>();

  const Command listing = runs.add("list", "List runs, one line each");
  listing.option("DB", options.databases, "Run databases or run directories").required();
  listing.json(options.json);
  listing.footer("Example: olmo-harness runs list runs/quickstart/run.db");
  listing.action([&options] { list(options); });

  const Command showing =
      runs.add("show", "Show a run: starts, inputs, checkpoints, metrics, evaluations, events");
  showing.run(options.run);
  showing.json(options.json);
  showing.footer("Example: olmo-harness runs show runs/quickstart/run.db");
  showing.action([&options] { show(options); });

  const Command exporting =
      runs.add("export", "Write a table of a run as JSON lines, CSV or Markdown");
  exporting.run(options.run);
  exporting.option("--table", options.table, listed(store::tables_of_runs()))
      .one_of(store::tables_of_runs())
      .with_default();
  exporting.option("--format", options.format, "jsonl, csv or md")
      .one_of({"jsonl", "csv", "md"})
      .with_default();
  exporting.option("--out FILE", options.out, "File to write (default: stdout)");
  exporting.flag("--all-attempts", options.all_attempts,
                 "With steps: also those that a later attempt replaced");
  exporting.footer(
      "Example: olmo-harness runs export run.db --table steps --format csv --out steps.csv");
  exporting.action([&options] { export_table(options); });

  add_runs_import(runs);

  const Command tagging = runs.add("tag", "Add words to a run, by which reports can find it");
  tagging.run(options.run);
  tagging.option("TAG", options.tags, "Words to add, such as noise:seed").required();
  tagging.flag("--remove", options.remove, "Remove the words instead");
  tagging.footer("Example: olmo-harness runs tag run.db seed-repeat");
  tagging.action([&options] { tag(options); });
}

}  // namespace olmo::cli
