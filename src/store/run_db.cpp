#include "store/run_db.h"

#include "core/error.h"

namespace olmo::store {

RunDb RunDb::open(const std::filesystem::path& path, OpenMode mode) {
  return RunDb(std::make_unique<RecordDatabase>(path, mode));
}

std::string RunDb::begin_run(const RunRecord& run, const AttemptRecord& attempt,
                             const std::vector<InputRecord>& inputs) {
  run_id_ = new_record_id();
  attempt_ = 1;
  Transaction transaction(db());
  db().prepare("INSERT INTO runs VALUES (?, ?, ?, 'running', ?, ?, ?, ?, ?, ?)")
      .bind_all({run_id_, run.name, utc_now(), run.config, run.experiment_digest,
                 static_cast<std::int64_t>(run.seed), run.n_parameters, run.max_steps,
                 run.chain_format})
      .step();
  insert_attempt(attempt);
  for (const auto& input : inputs) {
    db().prepare("INSERT OR IGNORE INTO inputs VALUES (?, ?, ?, ?, ?)")
        .bind_all({run_id_, input.kind, input.path, input.bytes, input.sha256})
        .step();
  }
  transaction.commit();
  return run_id_;
}

void RunDb::resume_run(const std::string& run_id, const AttemptRecord& attempt) {
  run_id_ = run_id;
  Transaction transaction(db());
  Statement last = db().prepare("SELECT coalesce(max(attempt), 0) FROM attempts WHERE run_id = ?");
  last.bind_all({run_id}).step();
  attempt_ = last.integer(0) + 1;
  insert_attempt(attempt);
  db().prepare("UPDATE runs SET status = 'running' WHERE run_id = ?").bind_all({run_id}).step();
  transaction.commit();
}

void RunDb::insert_attempt(const AttemptRecord& attempt) {
  db().prepare("INSERT INTO attempts VALUES (?, ?, ?, NULL, NULL, ?, ?, ?, ?, ?, ?)")
      .bind_all({run_id_, attempt_, utc_now(), attempt.start_step,
                 optional_value(attempt.resumed_from), attempt.command_line, attempt.policy,
                 attempt.build, attempt.environment})
      .step();
}

void RunDb::record_step(const StepRecord& row) {
  records_->add(
      {{"INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        {run_id_,
         attempt_,
         row.step,
         row.epoch,
         row.tokens,
         row.lr,
         row.ce_loss,
         row.ce_loss_per_label,
         optional_value(row.z_loss),
         row.loss,
         row.grad_norm,
         optional_value(row.max_grad_norm),
         optional_value(row.clipping_rate),
         row.param_norm,
         row.masked_instances,
         row.seconds,
         row.tokens_per_second,
         optional_value(row.mfu),
         row.batch_hash,
         row.chain_hash,
         row.loss_hash}}});
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
  records_->add({{"INSERT OR REPLACE INTO metrics VALUES (?, ?, ?, ?, ?)",
                  {run_id_, attempt_, step, name, value}}});
}

void RunDb::record_state_hashes(std::int64_t step, const std::vector<StateHash>& hashes,
                                const std::string& seal) {
  std::vector<RecordDatabase::Row> rows;
  rows.push_back(
      {"INSERT OR REPLACE INTO state_seals VALUES (?, ?, ?, ?)", {run_id_, attempt_, step, seal}});
  for (const auto& hash : hashes) {
    rows.push_back({"INSERT OR REPLACE INTO state_hashes VALUES (?, ?, ?, ?, ?, ?)",
                    {run_id_, attempt_, step, hash.part, hash.name, hash.sha256}});
  }
  records_->write(std::move(rows));
}

void RunDb::record_checkpoint(const CheckpointRecord& row) {
  records_->write({{"INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)",
                    {run_id_, attempt_, row.step, row.path, row.bytes, row.sha256, row.seconds,
                     row.stall_seconds, utc_now()}}});
}

void RunDb::record_checkpoint_deleted(const std::string& path) {
  records_->write(
      {{"UPDATE checkpoints SET deleted_utc = ? WHERE run_id = ? AND path = ? AND deleted_utc IS "
        "NULL",
        {utc_now(), run_id_, path}}});
}

void RunDb::record_energy(const std::vector<EnergyRecord>& energy) {
  std::vector<RecordDatabase::Row> rows;
  for (const auto& row : energy) {
    rows.push_back(
        {"INSERT OR REPLACE INTO energy VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
         {run_id_, attempt_, row.source, row.device, row.covers, optional_value(row.joules),
          optional_value(row.seconds), row.samples, row.note}});
  }
  records_->add(std::move(rows));
}

void RunDb::record_power(const std::vector<PowerSample>& samples) {
  std::vector<RecordDatabase::Row> rows;
  for (const auto& row : samples) {
    rows.push_back({"INSERT OR REPLACE INTO power_samples VALUES (?, ?, ?, ?, ?, ?)",
                    {run_id_, attempt_, row.seconds, row.source, row.device, row.watts}});
  }
  records_->add(std::move(rows));
}

void RunDb::event(std::int64_t step, const std::string& kind, const std::string& message) {
  records_->write(
      {{"INSERT INTO events (run_id, attempt, step, utc, kind, message) VALUES (?, ?, ?, ?, ?, ?)",
        {run_id_, attempt_, step, utc_now(), kind, message}}});
}

void RunDb::end_attempt(const std::string& outcome) {
  records_->write(
      {{"UPDATE attempts SET ended_utc = ?, outcome = ? WHERE run_id = ? AND attempt = ?",
        {utc_now(), outcome, run_id_, attempt_}},
       {"UPDATE runs SET status = ? WHERE run_id = ? AND NOT EXISTS "
        "(SELECT 1 FROM attempts later WHERE later.run_id = runs.run_id AND later.attempt > ?)",
        {outcome, run_id_, attempt_}}});
}

std::string RunDb::find_run(const std::string& prefix) const {
  std::vector<std::string> ids;
  records_->query(
      "SELECT run_id FROM runs WHERE substr(run_id, 1, ?) = ? ORDER BY rowid DESC LIMIT 3",
      {static_cast<std::int64_t>(prefix.size()), prefix},
      [&](const auto&, const auto& row) { ids.push_back(std::get<std::string>(row[0])); });
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

bool RunDb::has_run(const std::string& run_id) const {
  Statement found = db().prepare("SELECT 1 FROM runs WHERE run_id = ?");
  return found.bind_all({run_id}).step();
}

std::string RunDb::run_config(const std::string& run_id) const {
  Statement row = db().prepare("SELECT config FROM runs WHERE run_id = ?");
  if (!row.bind_all({run_id}).step())
    throw Error(ErrorKind::kUsage, path().string() + ": holds no run " + run_id);
  return row.text(0);
}

std::int64_t RunDb::chain_format(const std::string& run_id) const {
  if (records_->schema_version() < 6) return 1;
  Statement row = db().prepare("SELECT chain_format FROM runs WHERE run_id = ?");
  return row.bind_all({run_id}).step() ? row.integer(0) : 1;
}

void RunDb::tag(const std::string& run_id, const std::string& tag, bool remove) {
  const char* sql = remove ? "DELETE FROM tags WHERE run_id = ? AND tag = ?"
                           : "INSERT OR IGNORE INTO tags VALUES (?, ?)";
  db().prepare(sql).bind_all({run_id, tag}).step();
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
