// An imported run in the database.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/json.h"
#include "import/steps.h"

namespace olmo::import {
namespace {

using Json = nlohmann::json;
using Row = store::RecordDatabase::Row;

std::string describe(const StepLog& log, const ImportedRun& run) {
  Json facts = Json::parse(run.machine);
  facts.update({{"imported", true},
                {"format", to_string(log.format)},
                {"columns", log.columns},
                {"steps_known", log.steps_known},
                {"rows_without_loss", log.skipped}});
  if (!log.scales.empty()) facts["scales"] = log.scales;
  if (run.devices) facts["device_count"] = *run.devices;
  return json_text(facts);
}

/// What a file told: an attempt of the run with its number.
void add_file(std::vector<Row>& rows, const std::string& id, std::int64_t attempt,
              const StepLog& log, const ImportedRun& run, const std::string& now) {
  const std::int64_t start = log.steps_known && !log.steps.empty()
                                 ? std::max<std::int64_t>(0, log.steps[0].position - 1)
                                 : 0;
  rows.push_back({"INSERT INTO attempts VALUES (?, ?, ?, ?, 'finished', ?, NULL, ?, '{}', '{}', ?)",
                  {id, attempt, now, now, attempt == 1 ? std::int64_t{0} : start, run.command_line,
                   describe(log, run)}});
  rows.push_back(
      {"INSERT INTO inputs VALUES (?, 'log', ?, ?, ?)", {id, log.path, log.bytes, log.sha256}});
  for (const auto& row : log.steps) {
    rows.push_back({"INSERT INTO imported_steps VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    {id, row.position, store::optional_value(row.tokens),
                     store::optional_value(row.loss), store::optional_value(row.grad_norm),
                     store::optional_value(row.lr), store::optional_value(row.seconds),
                     store::optional_value(row.tokens_per_second), store::optional_value(row.step),
                     store::optional_value(row.tokens_per_second_per_device)}});
  }
  for (const auto& metric : log.metrics)
    rows.push_back({"INSERT OR REPLACE INTO metrics VALUES (?, ?, ?, ?, ?)",
                    {id, attempt, metric.position, log.metric_names[metric.name], metric.value}});
  for (const auto& restart : log.restarts) {
    rows.push_back(
        {"INSERT INTO events (run_id, attempt, step, utc, kind, message) VALUES (?, ?, ?, ?, ?, ?)",
         {id, attempt, restart.position, now, restart.of_file ? "resume" : "restart",
          restart.message}});
  }
}

}  // namespace

std::optional<std::string> find_import(const store::RecordDatabase& records,
                                       const std::string& sha256) {
  std::optional<std::string> found;
  records.query("SELECT max(run_id) FROM inputs WHERE kind = 'log' AND sha256 = ?", {sha256},
                [&](const auto&, const auto& row) {
                  if (const auto* id = std::get_if<std::string>(&row[0])) found = *id;
                });
  return found;
}

std::string write_step_logs(store::RecordDatabase& records, const std::vector<StepLog>& logs,
                            const ImportedRun& run) {
  const std::string id = store::new_record_id();
  const std::string now = store::utc_now();
  std::int64_t last_step = 0;  // 0: unknown
  for (const auto& log : logs)
    if (!log.steps.empty() && log.steps.back().step) last_step = *log.steps.back().step;
  std::vector<Row> rows;
  rows.push_back({"INSERT INTO runs VALUES (?, ?, ?, 'finished', ?, '', ?, 0, ?, 1)",
                  {id, run.name, now, run.config, static_cast<std::int64_t>(run.seed), last_step}});
  std::int64_t attempt = 0;
  for (const auto& log : logs) add_file(rows, id, ++attempt, log, run, now);
  for (const auto& tag : run.tags)
    rows.push_back({"INSERT OR IGNORE INTO tags VALUES (?, ?)", {id, tag}});
  records.write(std::move(rows));
  return id;
}

}  // namespace olmo::import
