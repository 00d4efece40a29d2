#include "store/imported_run.h"

#include "store/run_tables.h"

namespace olmo::store {

std::string write_imported_run(RecordDatabase& records, RunRecord run,
                               std::vector<ImportedFile> files,
                               const std::vector<std::string>& tags) {
  run.run_id = new_record_id();
  run.created_utc = utc_now();
  run.status = "finished";
  std::vector<RecordDatabase::Row> rows = {row_for<kRuns>("", run)};
  const auto add = [&](std::vector<RecordDatabase::Row> more) {
    rows.insert(rows.end(), std::make_move_iterator(more.begin()),
                std::make_move_iterator(more.end()));
  };
  std::int64_t number = 0;
  for (auto& file : files) {
    file.attempt.attempt = ++number;
    file.attempt.started_utc = file.attempt.ended_utc = run.created_utc;
    file.attempt.outcome = "finished";
    for (auto& metric : file.metrics) metric.attempt = number;
    for (auto& event : file.events) {
      event.attempt = number;
      event.utc = run.created_utc;
    }
    rows.push_back(row_for<kAttempts>(run.run_id, file.attempt));
    rows.push_back(row_for<kInputs>(run.run_id, file.log));
    add(rows_for<kImportedSteps>(run.run_id, file.steps));
    add(rows_for<kMetrics, Insert::kReplace>(run.run_id, file.metrics));
    add(rows_for<kEvents>(run.run_id, file.events));
  }
  for (const auto& tag : tags)
    rows.push_back(row_for<kTags, Insert::kIgnore>("", {.run_id = run.run_id, .tag = tag}));
  records.write(std::move(rows));
  return run.run_id;
}

std::optional<std::string> find_imported_run(const RecordDatabase& records,
                                             const std::string& sha256) {
  std::optional<std::string> found;
  records.query("SELECT max(run_id) FROM inputs WHERE kind = 'log' AND sha256 = ?", {sha256},
                [&](const auto&, const auto& row) {
                  if (const auto* id = std::get_if<std::string>(&row[0])) found = *id;
                });
  return found;
}

}  // namespace olmo::store
