#include "store/run_db.h"

#include <array>
#include <cstdio>
#include <random>

#include <sys/vfs.h>

#include "core/error.h"
#include "store/schema.h"

namespace olmo::store {
namespace {

constexpr auto kFlushInterval = std::chrono::milliseconds(500);

std::string new_run_id() {
  std::random_device entropy;
  std::array<char, 16> suffix{};
  std::snprintf(suffix.data(), suffix.size(), "%08x", entropy());
  std::string id = utc_now().substr(0, 19);  // 2026-01-31T23:59:59
  for (const char c : {'-', ':'}) id.erase(std::remove(id.begin(), id.end(), c), id.end());
  return id + "-" + suffix.data();
}

/// WAL needs memory shared between the machines that write; network file systems have none.
bool is_network_file_system(const std::filesystem::path& path) {
  struct statfs info {};
  const auto folder = std::filesystem::absolute(path).parent_path();
  if (::statfs(folder.c_str(), &info) != 0) return false;
  constexpr std::array<unsigned long, 8> kMagic = {
      0x6969,      // NFS
      0x0BD00BD0,  // Lustre
      0x47504653,  // GPFS
      0x19830326,  // BeeGFS
      0xFF534D42,  // CIFS
      0xFE534D42,  // SMB2
      0x00C36400,  // Ceph
      0x65735546,  // FUSE
  };
  return std::find(kMagic.begin(), kMagic.end(),
                   static_cast<unsigned long>(info.f_type) & 0xFFFFFFFFUL) != kMagic.end();
}

template <class T>
SqlValue optional_value(const std::optional<T>& value) {
  return value ? SqlValue(*value) : SqlValue{};
}

}  // namespace

std::string utc_now() {
  const auto now = std::chrono::system_clock::now();
  const auto seconds = std::chrono::system_clock::to_time_t(now);
  const auto millis =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> date{};
  std::strftime(date.data(), date.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%s.%03dZ", date.data(), static_cast<int>(millis));
  return text.data();
}

RunDb RunDb::open(const std::filesystem::path& path, OpenMode mode) {
  if (mode != OpenMode::kCreate && !std::filesystem::exists(path)) {
    throw Error(ErrorKind::kUsage, path.string() + ": there is no such run database");
  }
  if (std::filesystem::is_directory(path)) {
    throw Error(ErrorKind::kUsage,
                path.string() + ": is a folder, a run database is a file such as run.db");
  }
  return {Database(path, mode), mode};
}

RunDb::RunDb(Database db, OpenMode mode) : db_(std::move(db)) {
  db_.execute("PRAGMA foreign_keys = ON;");
  check_identity();
  if (mode != OpenMode::kReadOnly) {
    choose_journal();
    db_.execute("PRAGMA synchronous = FULL;");
    migrate();
  }
}

RunDb::~RunDb() {
  try {
    if (!pending_.empty()) flush();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "warning: the last rows of the run record were lost: %s\n", error.what());
  }
}

void RunDb::check_identity() {
  const auto number = [&](const char* pragma) { return std::get<std::int64_t>(db_.value(pragma)); };
  const auto tables = number("SELECT count(*) FROM sqlite_schema");
  if (tables > 0 && number("PRAGMA application_id") != kApplicationId) {
    throw Error(ErrorKind::kDamaged,
                path().string() + ": is an SQLite database, but not one of olmo-harness");
  }
  const auto version = number("PRAGMA user_version");
  if (version > kSchemaVersion) {
    throw Error(ErrorKind::kDamaged,
                path().string() + ": has schema version " + std::to_string(version) +
                    ", this olmo-harness knows versions up to " + std::to_string(kSchemaVersion) +
                    ": use a newer olmo-harness");
  }
}

void RunDb::migrate() {
  Transaction transaction(db_);  // holds the write lock: two processes may open a new file at once
  const auto version = std::get<std::int64_t>(db_.value("PRAGMA user_version"));
  for (auto from = version; from < kSchemaVersion; ++from) db_.execute(kMigrations[from]);
  if (version < kSchemaVersion) {
    db_.execute("PRAGMA application_id = " + std::to_string(kApplicationId) +
                "; PRAGMA user_version = " + std::to_string(kSchemaVersion));
  }
  transaction.commit();
}

void RunDb::choose_journal() {
  const char* wanted = is_network_file_system(path()) ? "TRUNCATE" : "WAL";
  const auto set = [&](const std::string& mode) {
    return std::get<std::string>(db_.value("PRAGMA journal_mode = " + mode));
  };
  journal_mode_ = set(wanted);
  if (journal_mode_ != "wal" && journal_mode_ != "truncate") journal_mode_ = set("TRUNCATE");
}

std::string RunDb::begin_run(const RunRecord& run, const AttemptRecord& attempt,
                             const std::vector<InputRecord>& inputs) {
  run_id_ = new_run_id();
  attempt_ = 1;
  Transaction transaction(db_);
  db_.prepare("INSERT INTO runs VALUES (?, ?, ?, 'running', ?, ?, ?, ?, ?)")
      .bind_all({run_id_, run.name, utc_now(), run.config, run.experiment_digest,
                 static_cast<std::int64_t>(run.seed), run.n_parameters, run.max_steps})
      .step();
  insert_attempt(attempt);
  for (const auto& input : inputs) {
    db_.prepare("INSERT OR REPLACE INTO inputs VALUES (?, ?, ?, ?, ?)")
        .bind_all({run_id_, input.kind, input.path, input.bytes, input.sha256})
        .step();
  }
  transaction.commit();
  return run_id_;
}

void RunDb::resume_run(const std::string& run_id, const AttemptRecord& attempt) {
  run_id_ = run_id;
  Transaction transaction(db_);
  Statement last = db_.prepare("SELECT coalesce(max(attempt), 0) FROM attempts WHERE run_id = ?");
  last.bind_all({run_id}).step();
  attempt_ = last.integer(0) + 1;
  insert_attempt(attempt);
  db_.prepare("UPDATE runs SET status = 'running' WHERE run_id = ?").bind_all({run_id}).step();
  transaction.commit();
}

void RunDb::insert_attempt(const AttemptRecord& attempt) {
  db_.prepare("INSERT INTO attempts VALUES (?, ?, ?, NULL, NULL, ?, ?, ?, ?, ?, ?)")
      .bind_all({run_id_, attempt_, utc_now(), attempt.start_step,
                 optional_value(attempt.resumed_from), attempt.command_line, attempt.policy,
                 attempt.build, attempt.environment})
      .step();
}

void RunDb::add(const char* sql, std::vector<SqlValue> values, bool now) {
  pending_.push_back({sql, std::move(values)});
  if (now || std::chrono::steady_clock::now() - last_flush_ >= kFlushInterval) flush();
}

void RunDb::flush() {
  Transaction transaction(db_);
  for (const auto& row : pending_) db_.prepare(row.sql).bind_all(row.values).step();
  transaction.commit();
  pending_.clear();
  last_flush_ = std::chrono::steady_clock::now();
}

void RunDb::record_step(const StepRecord& row) {
  add("INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
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
       row.chain_hash},
      false);
}

void RunDb::record_metric(std::int64_t step, const std::string& name, double value) {
  add("INSERT OR REPLACE INTO metrics VALUES (?, ?, ?, ?, ?)",
      {run_id_, attempt_, step, name, value}, false);
}

void RunDb::record_state_hashes(std::int64_t step, const std::vector<StateHash>& hashes) {
  for (const auto& hash : hashes) {
    pending_.push_back({"INSERT OR REPLACE INTO state_hashes VALUES (?, ?, ?, ?, ?, ?)",
                        {run_id_, attempt_, step, hash.part, hash.name, hash.sha256}});
  }
  flush();
}

void RunDb::record_checkpoint(const CheckpointRecord& row) {
  add("INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)",
      {run_id_, attempt_, row.step, row.path, row.bytes, row.sha256, row.seconds, row.stall_seconds,
       utc_now()},
      true);
}

void RunDb::record_checkpoint_deleted(const std::string& path) {
  add("UPDATE checkpoints SET deleted_utc = ? WHERE run_id = ? AND path = ? AND deleted_utc IS "
      "NULL",
      {utc_now(), run_id_, path}, true);
}

void RunDb::event(std::int64_t step, const std::string& kind, const std::string& message) {
  add("INSERT INTO events (run_id, attempt, step, utc, kind, message) VALUES (?, ?, ?, ?, ?, ?)",
      {run_id_, attempt_, step, utc_now(), kind, message}, true);
}

void RunDb::end_attempt(const std::string& outcome) {
  pending_.push_back(
      {"UPDATE attempts SET ended_utc = ?, outcome = ? WHERE run_id = ? AND attempt = ?",
       {utc_now(), outcome, run_id_, attempt_}});
  pending_.push_back({"UPDATE runs SET status = ? WHERE run_id = ?", {outcome, run_id_}});
  flush();
}

std::string RunDb::find_run(const std::string& prefix) const {
  std::vector<std::string> ids;
  query(
      "SELECT run_id FROM runs WHERE substr(run_id, 1, ?) = ? ORDER BY created_utc DESC, run_id "
      "DESC LIMIT 3",
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
  Statement found = db_.prepare("SELECT 1 FROM runs WHERE run_id = ?");
  return found.bind_all({run_id}).step();
}

std::string RunDb::run_config(const std::string& run_id) const {
  Statement row = db_.prepare("SELECT config FROM runs WHERE run_id = ?");
  if (!row.bind_all({run_id}).step())
    throw Error(ErrorKind::kUsage, path().string() + ": holds no run " + run_id);
  return row.text(0);
}

void RunDb::query(const std::string& sql, const std::vector<SqlValue>& parameters,
                  const OnRow& on_row) const {
  Statement statement = db_.prepare(sql);
  statement.bind_all(parameters);
  std::vector<std::string> names;
  for (int i = 0; i < statement.column_count(); ++i) names.push_back(statement.column_name(i));
  std::vector<SqlValue> values(names.size());
  while (statement.step()) {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = statement.column(static_cast<int>(i));
    on_row(names, values);
  }
}

void RunDb::tag(const std::string& run_id, const std::string& tag, bool remove) {
  const char* sql = remove ? "DELETE FROM tags WHERE run_id = ? AND tag = ?"
                           : "INSERT OR IGNORE INTO tags VALUES (?, ?)";
  db_.prepare(sql).bind_all({run_id, tag}).step();
}

RunName parse_run_name(const std::string& text) {
  namespace fs = std::filesystem;
  if (fs::is_directory(text)) return {fs::path(text) / "run.db", ""};
  if (fs::exists(text)) return {text, ""};
  const auto colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return {text, ""};
  fs::path database = text.substr(0, colon);
  if (fs::is_directory(database)) database /= "run.db";
  return {database, text.substr(colon + 1)};
}

}  // namespace olmo::store
