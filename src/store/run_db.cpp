#include "store/run_db.h"

#include "core/error.h"
#include "store/run_tables.h"

namespace olmo::store {

RunDb RunDb::open(const std::filesystem::path& path, OpenMode mode) {
  return RunDb(std::make_unique<RecordDatabase>(path, mode));
}

std::string RunDb::begin_run(RunRecord run, AttemptRecord attempt,
                             const std::vector<InputRecord>& inputs) {
  run_id_ = run.run_id = new_record_id();
  attempt_ = attempt.attempt = 1;
  run.created_utc = attempt.started_utc = utc_now();
  run.status = "running";
  auto rows = rows_for<kInputs, Insert::kIgnore>(run_id_, inputs);
  rows.insert(rows.begin(), {row_for<kRuns>("", run), row_for<kAttempts>(run_id_, attempt)});
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

void RunDb::event(std::int64_t step, const std::string& kind, const std::string& message) {
  records_->write({row_for<kEvents>(
      run_id_,
      {.attempt = attempt_, .step = step, .utc = utc_now(), .kind = kind, .message = message})});
}

void RunDb::end_attempt(const std::string& outcome) {
  records_->write(
      {{"UPDATE attempts SET ended_utc = ?, outcome = ? WHERE run_id = ? AND attempt = ?",
        {utc_now(), outcome, run_id_, attempt_}},
       {"UPDATE runs SET status = ? WHERE run_id = ? AND NOT EXISTS "
        "(SELECT 1 FROM attempts later WHERE later.run_id = runs.run_id AND later.attempt > ?)",
        {outcome, run_id_, attempt_}}});
}

void RunDb::tag(const std::string& run_id, const std::string& tag, bool remove) {
  if (remove) {
    records_->write({{"DELETE FROM tags WHERE run_id = ? AND tag = ?", {run_id, tag}}});
  } else {
    records_->write({row_for<kTags, Insert::kIgnore>("", {.run_id = run_id, .tag = tag})});
  }
}

std::string RunDb::find_run(const std::string& prefix) const {
  const auto ids = ids_from(prefix);
  if (ids.empty()) {
    throw Error(ErrorKind::kUsage,
                path().string() + (prefix.empty()
                                       ? ": holds no run"
                                       : ": holds no run whose id begins with '" + prefix + "'"));
  }
  if (!prefix.empty() && ids.size() > 1 && ids[0] != prefix) {
    throw Error(ErrorKind::kUsage, path().string() + ": '" + prefix + "' names several runs (" +
                                       ids[0] + ", " + ids[1] + ", ...): give more of the id");
  }
  return ids.front();
}

std::vector<std::string> RunDb::ids_from(const std::string& prefix) const {
  std::vector<std::string> ids;
  records_->query(
      "SELECT run_id FROM runs WHERE substr(run_id, 1, ?) = ? ORDER BY rowid DESC LIMIT 3",
      {static_cast<std::int64_t>(prefix.size()), prefix},
      [&](const auto&, const auto& row) { ids.push_back(std::get<std::string>(row[0])); });
  return ids;
}

bool RunDb::has_run(const std::string& prefix) const { return !ids_from(prefix).empty(); }

RunRecord RunDb::run(const std::string& run_id) const {
  auto found = read_one(*records_, kRuns, "WHERE run_id = ?", {run_id});
  if (!found) throw Error(ErrorKind::kUsage, path().string() + ": holds no run " + run_id);
  return *std::move(found);
}

std::string RunDb::latest_run_of(const std::string& experiment_digest) const {
  const auto found =
      read_one(*records_, kRuns, "WHERE experiment_digest = ? ORDER BY rowid", {experiment_digest});
  return found ? found->run_id : "";
}

RunName parse_run_name(const std::string& text) {
  namespace fs = std::filesystem;
  std::error_code none;  // a text that cannot be a path names nothing; opening it says so
  if (fs::is_directory(text, none)) return {fs::path(text) / "run.db", ""};
  if (fs::exists(text, none)) return {text, ""};
  const auto colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return {text, ""};
  fs::path database = text.substr(0, colon);
  if (fs::is_directory(database, none)) database /= "run.db";
  return {database, text.substr(colon + 1)};
}

}  // namespace olmo::store
