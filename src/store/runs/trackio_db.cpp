#include "store/runs/trackio_db.h"

#include <utility>

namespace olmo::store {
namespace {

constexpr char kTrackioTables[] = R"sql(
CREATE TABLE IF NOT EXISTS metrics (
  id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, timestamp TEXT NOT NULL,
  run_name TEXT NOT NULL, step INTEGER NOT NULL, metrics TEXT NOT NULL, log_id TEXT, space_id TEXT);
CREATE INDEX IF NOT EXISTS idx_metrics_run_step ON metrics(run_id, step);
CREATE INDEX IF NOT EXISTS idx_metrics_run_timestamp ON metrics(run_id, timestamp);
CREATE TABLE IF NOT EXISTS configs (
  id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, run_name TEXT NOT NULL,
  config TEXT NOT NULL, created_at TEXT NOT NULL, UNIQUE(run_id));
CREATE INDEX IF NOT EXISTS idx_configs_run_name ON configs(run_name);
)sql";

bool is_there(const std::filesystem::path& path) {
  std::error_code none;
  return std::filesystem::exists(path, none);
}

}  // namespace

TrackioDb::TrackioDb(const std::filesystem::path& path)
    : is_new_(!is_there(path)), db_(path, OpenMode::kCreate) {
  require_trackio();
  transaction_.emplace(db_);
  db_.execute(kTrackioTables);
}

TrackioDb::~TrackioDb() {
  insert_.reset();
  if (!transaction_) return;
  transaction_.reset();
  std::error_code ignored;
  if (is_new_) std::filesystem::remove(db_.path(), ignored);
}

void TrackioDb::require_trackio() const {
  const auto count = [&](const char* sql) { return std::get<std::int64_t>(db_.value(sql)); };
  if (count("SELECT count(*) FROM sqlite_schema") == 0) return;  // new
  if (count("SELECT count(*) FROM pragma_table_info('metrics') WHERE name IN "
            "('run_id', 'run_name', 'metrics')") == 3 &&
      count("SELECT count(*) FROM pragma_table_info('configs') WHERE name = 'run_id'") == 1)
    return;
  throw Error(ErrorKind::kUsage, db_.path().string() +
                                     ": is no database of trackio 0.24 or later, and is left as it "
                                     "is: choose another folder or --project");
}

void TrackioDb::begin_run(Run run) {
  run_ = std::move(run);
  for (const char* table : {"metrics", "configs"})
    db_.prepare("DELETE FROM " + std::string(table) + " WHERE run_id = ?")
        .bind_all({run_.run_id})
        .step();
  db_.prepare("INSERT INTO configs (run_id, run_name, config, created_at) VALUES (?, ?, ?, ?)")
      .bind_all({run_.run_id, run_.name, run_.config, run_.created})
      .step();
  insert_.emplace(db_.prepare(
      "INSERT INTO metrics (run_id, timestamp, run_name, step, metrics) VALUES (?, ?, ?, ?, ?)"));
}

void TrackioDb::add_step(std::int64_t step, const std::string& time, const std::string& metrics) {
  insert_->bind_all({run_.run_id, time, run_.name, step, metrics}).step();
  insert_->reset();
}

void TrackioDb::commit() {
  insert_.reset();
  transaction_->commit();
  transaction_.reset();
}

}  // namespace olmo::store
