#include "store/runs/run_db.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include "core/error.h"
#include "store/run_files.h"
#include "store/runs/recorded_run.h"
#include "store/runs/run_seals.h"
#include "store/runs/run_tables.h"

namespace olmo::store {
namespace {

struct ExportedTable {
  const char* name;
  const char* order;  ///< by number where older schemas have other columns
};

constexpr std::array<ExportedTable, 17> kExportedTables = {{
    {"steps", "step"},
    {"imported_steps", "2"},
    {"ranks", "attempt, rank"},
    {"phases", "attempt, first_step, phase"},
    {"energy", "2, 3, 4, 5"},
    {"power_samples", "2, 3, 4, 5, 6"},
    {"attempts", "attempt"},
    {"inputs", "kind, path"},
    {"metrics", "step, attempt, name"},
    {"state_seals", "step, attempt"},
    {"op_traces", "step, attempt, audit, ordinal"},
    {"audits", "audit"},
    {"declarations", "declaration"},
    {"state_hashes", "step, attempt, part, name"},
    {"checkpoints", "step, attempt"},
    {"events", "event_id"},
    {"runs", "run_id"},
}};

/// A file that is named twice is one input.
std::vector<InputRecord> without_repeats(const std::vector<InputRecord>& inputs) {
  std::vector<InputRecord> once;
  std::set<std::pair<std::string, std::string>> seen;
  for (const auto& input : inputs)
    if (seen.emplace(input.kind, input.path).second) once.push_back(input);
  return once;
}

void append(std::vector<RecordDatabase::Row>& rows, std::vector<RecordDatabase::Row> more) {
  rows.insert(rows.end(), std::make_move_iterator(more.begin()),
              std::make_move_iterator(more.end()));
}

}  // namespace

RunDb RunDb::open(const std::filesystem::path& path, OpenMode mode) {
  return RunDb(std::make_unique<RecordDatabase>(path, mode));
}

std::string RunDb::begin_run(RunRecord run, AttemptRecord attempt,
                             const std::vector<InputRecord>& inputs) {
  run_id_ = run.run_id = new_record_id();
  attempt_ = attempt.attempt = 1;
  run.created_utc = attempt.started_utc = utc_now();
  run.status = "running";
  const auto once = without_repeats(inputs);
  std::vector<RecordDatabase::Row> rows = {row_for<kRuns>("", run),
                                           row_for<kAttempts>(run_id_, attempt)};
  append(rows, rows_for<kInputs>(run_id_, once));
  append(rows, seals_of_start(run, once));
  records_->write(std::move(rows));
  return run_id_;
}

void RunDb::resume_run(const std::string& run_id, AttemptRecord attempt, std::int64_t max_steps) {
  run_id_ = run_id;
  records_->write_after([&]() -> std::vector<RecordDatabase::Row> {
    attempt_ = 1;
    for_each(*records_, kAttempts, "WHERE run_id = ?", {run_id},
             [&](const AttemptRecord& row) { attempt_ = std::max(attempt_, row.attempt + 1); });
    attempt.attempt = attempt_;
    attempt.started_utc = utc_now();
    return {row_for<kAttempts>(run_id, attempt),
            {"UPDATE runs SET status = 'running', max_steps = ? WHERE run_id = ?",
             {max_steps, run_id}}};
  });
}

void RunDb::record_step(StepRecord row) {
  row.attempt = attempt_;
  records_->add({row_for<kSteps>(run_id_, row)});
}

void RunDb::record_peak(double flops, const std::string& source) {
  records_->write(
      {{"UPDATE steps SET mfu = mfu * (SELECT json_extract(environment, '$.peak_flops') FROM "
        "attempts WHERE run_id = ? AND attempt = ?) / ? WHERE run_id = ? AND attempt = ?",
        {run_id_, attempt_, flops, run_id_, attempt_}},
       {"UPDATE attempts SET environment = json_set(environment, '$.peak_flops', ?, "
        "'$.peak_source', ?) WHERE run_id = ? AND attempt = ?",
        {flops, source, run_id_, attempt_}}});
}

void RunDb::record_metric(std::int64_t step, const std::string& name, double value) {
  records_->add({row_for<kMetrics, Insert::kReplace>(
      run_id_, {.attempt = attempt_, .step = step, .name = name, .value = value})});
}

void RunDb::record_state_hashes(std::int64_t step, std::vector<StateHash> hashes,
                                const std::string& seal) {
  for (auto& hash : hashes) {
    hash.attempt = attempt_;
    hash.step = step;
  }
  auto rows = rows_for<kStateHashes, Insert::kReplace>(run_id_, hashes);
  rows.push_back(row_for<kStateSeals, Insert::kReplace>(
      run_id_, {.attempt = attempt_, .step = step, .sha256 = seal}));
  records_->write(std::move(rows));
}

void RunDb::record_checkpoint(CheckpointRecord row) {
  row.attempt = attempt_;
  row.created_utc = utc_now();
  records_->write({row_for<kCheckpoints, Insert::kReplace>(run_id_, row)});
}

void RunDb::record_checkpoint_deleted(const std::string& path) {
  records_->write(
      {{"UPDATE checkpoints SET deleted_utc = ? WHERE run_id = ? AND path = ? AND deleted_utc IS "
        "NULL",
        {utc_now(), run_id_, path}}});
}

void RunDb::record_energy(std::vector<EnergyRecord> energy) {
  for (auto& row : energy) row.attempt = attempt_;
  records_->add(rows_for<kEnergy, Insert::kReplace>(run_id_, energy));
}

void RunDb::record_power(std::vector<PowerSample> samples) {
  for (auto& row : samples) row.attempt = attempt_;
  records_->add(rows_for<kPowerSamples, Insert::kReplace>(run_id_, samples));
}

void RunDb::record_ranks(std::vector<RankRecord> ranks) {
  for (auto& row : ranks) row.attempt = attempt_;
  records_->add(rows_for<kRanks, Insert::kReplace>(run_id_, ranks));
}

void RunDb::record_phases(std::vector<PhaseRecord> phases) {
  for (auto& row : phases) row.attempt = attempt_;
  records_->add(rows_for<kPhases, Insert::kReplace>(run_id_, phases));
}

void RunDb::event(std::int64_t step, const std::string& kind, const std::string& message) {
  records_->write({row_for<kEvents>(
      run_id_,
      {.attempt = attempt_, .step = step, .utc = utc_now(), .kind = kind, .message = message})});
}

void RunDb::end_attempt(const std::string& outcome) {
  const std::string now = utc_now();
  std::vector<RecordDatabase::Row> rows = {
      {"UPDATE attempts SET ended_utc = ?, outcome = ? WHERE run_id = ? AND attempt = ?",
       {now, outcome, run_id_, attempt_}},
      {"UPDATE runs SET status = ? WHERE run_id = ? AND NOT EXISTS "
       "(SELECT 1 FROM attempts later WHERE later.run_id = runs.run_id AND later.attempt > ?)",
       {outcome, run_id_, attempt_}}};
  try {
    records_->write_after([&] {
      auto ended =
          read_one(*records_, kAttempts, "WHERE run_id = ? AND attempt = ?", {run_id_, attempt_})
              .value_or(AttemptRecord{});
      ended.ended_utc = now;
      ended.outcome = outcome;
      auto sealed = rows;
      append(sealed, seals_of_end(*records_, run_id_, ended));
      return sealed;
    });
  } catch (const Error&) {  // rows wait that cannot be written now: they and the end may be later
    rows.push_back(no_seals_of_end(run_id_, attempt_));
    records_->write(std::move(rows));
  }
}

void RunDb::tag(const std::string& run_id, const std::string& tag, bool remove) {
  if (remove) {
    records_->write({{"DELETE FROM tags WHERE run_id = ? AND tag = ?", {run_id, tag}}});
  } else {
    records_->write({row_for<kTags, Insert::kIgnore>("", {.run_id = run_id, .tag = tag})});
  }
}

std::string RunDb::find_run(const std::string& prefix) const {
  return one_id_of(*records_, "run", prefix, ids_from(*records_, "run", prefix));
}

bool RunDb::has_run(const std::string& prefix) const {
  return !ids_from(*records_, "run", prefix).empty();
}

RunRecord RunDb::run(const std::string& run_id) const { return read_run_record(*records_, run_id); }

std::string RunDb::latest_run_of(const std::string& experiment_digest) const {
  const auto found =
      read_one(*records_, kRuns, "WHERE experiment_digest = ? ORDER BY rowid", {experiment_digest});
  return found ? found->run_id : "";
}

RunName parse_run_name(const std::string& text) {
  namespace fs = std::filesystem;
  std::error_code none;  // a text that cannot be a path names nothing; opening it says so
  if (fs::is_directory(text, none)) return {fs::path(text) / kRunDatabaseName, ""};
  if (fs::exists(text, none)) return {text, ""};
  const auto colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return {text, ""};
  fs::path database = text.substr(0, colon);
  if (fs::is_directory(database, none)) database /= kRunDatabaseName;
  return {database, text.substr(colon + 1)};
}

std::string write_imported_run(RecordDatabase& records, RunRecord run,
                               std::vector<ImportedFile> files,
                               const std::vector<std::string>& tags) {
  run.run_id = new_record_id();
  run.created_utc = utc_now();
  run.status = "finished";
  std::vector<RecordDatabase::Row> rows = {row_for<kRuns>("", run)};
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
    append(rows, rows_for<kImportedSteps>(run.run_id, file.steps));
    append(rows, rows_for<kMetrics, Insert::kReplace>(run.run_id, file.metrics));
    append(rows, rows_for<kEvents>(run.run_id, file.events));
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

std::vector<std::string> tables_of_runs() {
  std::vector<std::string> names;
  for (const auto& table : kExportedTables) names.emplace_back(table.name);
  return names;
}

void for_each_row(const RunDb& db, const std::string& table, const std::string& run_id,
                  bool all_attempts, const RecordDatabase::OnRow& on_row) {
  const auto* found = std::find_if(kExportedTables.begin(), kExportedTables.end(),
                                   [&](const auto& each) { return table == each.name; });
  OLMO_CHECK(found != kExportedTables.end());
  bool is_there = false;
  db.records().query("SELECT 1 FROM sqlite_schema WHERE name = ?", {table},
                     [&](const auto&, const auto&) { is_there = true; });
  if (!is_there) return;
  std::string from = table, order = found->order;
  if (table == "steps") {
    if (all_attempts)
      order = "attempt, step";
    else
      from = "surviving_steps";
  }
  db.records().query("SELECT * FROM " + from + " WHERE run_id = ? ORDER BY " + order, {run_id},
                     on_row);
}

void for_each_metric(const RunDb& db, const std::string& run_id,
                     const RecordDatabase::OnRow& on_row) {
  db.records().query(
      "SELECT name, count(*) AS points, max(step) AS last_step, value AS last FROM metrics WHERE "
      "run_id = ? GROUP BY name ORDER BY name",
      {run_id}, on_row);
}

}  // namespace olmo::store
