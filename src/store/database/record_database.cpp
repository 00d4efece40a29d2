#include "store/database/record_database.h"

#include <array>
#include <cstdio>
#include <random>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "core/files/input_file.h"
#include "core/process/terminal.h"
#include "core/text/utc_time.h"
#include "store/database/schema.h"
#include "store/file_system.h"

namespace olmo::store {
namespace {

constexpr auto kFlushInterval = std::chrono::milliseconds(500);

/// Refuses what SQLite would turn into a sentence about something else.
const std::filesystem::path& checked(const std::filesystem::path& path, OpenMode mode) {
  std::error_code none;  // a text that cannot be a path names nothing
  if (mode != OpenMode::kCreate && !is_there(path)) {
    throw Error(ErrorKind::kUsage, path.string() + ": there is no such run database");
  }
  if (std::filesystem::is_directory(path, none)) {
    throw Error(ErrorKind::kUsage,
                path.string() + ": is a folder, a run database is a file such as run.db");
  }
  if (std::filesystem::exists(path, none)) check_regular_file(path);
  return path;
}

/// True if rows may lie in a file that is not here: a database with a write-ahead log has that
/// beside it while it is written and after a kill, and so has a run that did not end.
bool lacks_journal(const Database& db) {
  return DatabaseHeader(db.path()).has_log() && journals_of(db.path()).empty() &&
         std::get<std::int64_t>(db.value("SELECT count(*) FROM runs WHERE status = 'running'")) > 0;
}

}  // namespace

std::string utc_now(int digits) { return utc_text(std::chrono::system_clock::now(), digits); }

std::string new_record_id() {
  std::random_device entropy;
  std::array<char, 16> suffix{};
  std::snprintf(suffix.data(), suffix.size(), "%08x", entropy());
  std::string id = utc_now().substr(0, 19);  // 2026-01-31T23:59:59
  for (const char c : {'-', ':'}) id.erase(std::remove(id.begin(), id.end(), c), id.end());
  return id + "-" + suffix.data();
}

std::vector<std::string> ids_from(const RecordDatabase& records, const std::string& what,
                                  const std::string& prefix) {
  const std::string id = what + "_id";
  std::vector<std::string> ids;
  records.query(
      "SELECT " + id + " FROM " + what + "s WHERE substr(" + id +
          ", 1, ?) = ? ORDER BY rowid DESC LIMIT 3",
      {static_cast<std::int64_t>(prefix.size()), prefix},
      [&](const auto&, const auto& row) { ids.push_back(std::get<std::string>(row[0])); });
  return ids;
}

std::string one_id_of(const RecordDatabase& records, const std::string& what,
                      const std::string& prefix, const std::vector<std::string>& ids) {
  const std::string where = records.path().string();
  if (ids.empty()) {
    throw Error(ErrorKind::kUsage,
                where + ": holds no " + what +
                    (prefix.empty() ? "" : " whose id begins with '" + prefix + "'"));
  }
  if (!prefix.empty() && ids.size() > 1 && ids[0] != prefix) {
    throw Error(ErrorKind::kUsage, where + ": '" + prefix + "' names several " + what + "s (" +
                                       ids[0] + ", " + ids[1] + ", ...): give more of the id");
  }
  return ids.front();
}

bool holds_tables(const std::filesystem::path& path) {
  std::error_code none;
  if (!std::filesystem::exists(path, none)) return false;
  if (std::filesystem::file_size(path, none) == 0 && !none) return false;
  const Database db(checked(path, OpenMode::kReadOnly), OpenMode::kReadOnly);
  return std::get<std::int64_t>(db.value("SELECT count(*) FROM sqlite_schema")) > 0;
}

RecordDatabase::RecordDatabase(const std::filesystem::path& path, OpenMode mode)
    : db_(checked(path, mode), mode) {
  db_.execute("PRAGMA foreign_keys = ON;");
  check_identity(mode);
  if (mode == OpenMode::kGlance) return;
  if (mode == OpenMode::kReadOnly) {
    if (lacks_journal(db_)) {
      log_warning(
          path.string() + ": a run in it did not end, and there is no " + path.filename().string() +
          "-wal beside it: if this is a copy, copy that file too, or the last rows are missing");
    }
    return;
  }
  choose_journal();
  db_.execute("PRAGMA synchronous = FULL;");
  migrate();
}

RecordDatabase::~RecordDatabase() {
  if (thread_.joinable()) {
    {
      const auto held = lock();
      ending_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  try {
    failure_ = nullptr;  // another try is made
    flush();
  } catch (const std::exception& error) {
    log_warning("the last " + std::to_string(pending_.size()) +
                " rows of the run record were lost: " + error.what());
  }
}

namespace {

/// Of kTablesSince that the file has. A lower version than its would hide what later versions
/// record, and the seals over it.
TableSince newest_table(const Database& db) {
  TableSince newest{"", 0};
  for (const TableSince& each : kTablesSince) {
    Statement found = db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?");
    if (found.bind(1, std::string(each.table)).step()) newest = each;
  }
  return newest;
}

}  // namespace

void RecordDatabase::check_identity(OpenMode mode) {
  const auto number = [&](const char* pragma) { return std::get<std::int64_t>(db_.value(pragma)); };
  const auto tables = number("SELECT count(*) FROM sqlite_schema");
  if (tables == 0 && mode != OpenMode::kCreate) {
    throw Error(ErrorKind::kDamaged,
                path().string() + ": holds no tables, so no run was recorded in it");
  }
  if (tables > 0 && number("PRAGMA application_id") != kApplicationId) {
    throw Error(ErrorKind::kDamaged,
                path().string() + ": is an SQLite database, but not one of olmo-harness");
  }
  const TableSince newest = newest_table(db_);  // looked for before a writer may migrate
  schema_version_ = number("PRAGMA user_version");
  if (tables > 0 && schema_version_ < 1) {
    throw Error(ErrorKind::kDamaged, path().string() + ": has schema version " +
                                         std::to_string(schema_version_) + ", which never was");
  }
  if (schema_version_ > kSchemaVersion) {
    throw Error(ErrorKind::kDamaged,
                path().string() + ": has schema version " + std::to_string(schema_version_) +
                    ", this olmo-harness knows versions up to " + std::to_string(kSchemaVersion) +
                    ": use a newer olmo-harness");
  }
  if (schema_version_ < newest.version)
    throw Error(ErrorKind::kDamaged,
                path().string() + ": has schema version " + std::to_string(schema_version_) +
                    " and the table " + newest.table + " of version " +
                    std::to_string(newest.version) + ": one of them was altered");
}

void RecordDatabase::migrate() {
  Transaction transaction(db_);  // holds the write lock: two processes may open a new file at once
  const auto version = std::get<std::int64_t>(db_.value("PRAGMA user_version"));
  for (auto from = version; from < kSchemaVersion; ++from) db_.execute(kMigrations[from]);
  if (version < kSchemaVersion) {
    db_.execute("PRAGMA application_id = " + std::to_string(kApplicationId) +
                "; PRAGMA user_version = " + std::to_string(kSchemaVersion));
  }
  transaction.commit();
  schema_version_ = kSchemaVersion;
}

void RecordDatabase::choose_journal() {
  // WAL needs memory shared between the machines that write; network file systems have none.
  const auto folder = std::filesystem::absolute(path()).parent_path();
  const char* wanted = is_network_file_system(folder) ? "TRUNCATE" : "WAL";
  // SQLite does not wait here for another process that opens the same new file at this moment; it
  // is waited for as long as elsewhere.
  const std::chrono::milliseconds patience(
      std::get<std::int64_t>(db_.value("PRAGMA busy_timeout")));
  const auto end = Clock::now() + patience;
  const auto set = [&](const std::string& mode) {
    for (;;) {
      try {
        return std::get<std::string>(db_.value("PRAGMA journal_mode = " + mode));
      } catch (const DatabaseError& error) {
        if (!error.may_pass() || Clock::now() > end || error.kind() != ErrorKind::kFailure) throw;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    }
  };
  journal_mode_ = set(wanted);
  if (journal_mode_ != "wal" && journal_mode_ != "truncate") journal_mode_ = set("TRUNCATE");
}

void RecordDatabase::outlast_failures() {
  const auto held = lock();
  patient_ = true;
}

void RecordDatabase::append(std::vector<Row> rows) {
  if (pending_.empty()) due_ = Clock::now() + kFlushInterval;
  pending_.insert(pending_.end(), std::make_move_iterator(rows.begin()),
                  std::make_move_iterator(rows.end()));
}

void RecordDatabase::add(std::vector<Row> rows) {
  const auto held = lock();
  append(std::move(rows));
  throw_failure();
  if (pending_.empty()) return;
  start_thread();
  if (thread_.joinable()) {
    wake_.notify_one();
  } else if (Clock::now() >= due_) {
    commit_pending();
  }
}

void RecordDatabase::write(std::vector<Row> rows) {
  const auto held = lock();
  append(std::move(rows));
  throw_failure();
  commit_pending();
}

void RecordDatabase::write_after(const std::function<std::vector<Row>()>& make) {
  const auto held = lock();
  flush();
  Transaction transaction(db_);
  apply(make());
  transaction.commit();
}

void RecordDatabase::flush() {
  const auto held = lock();
  throw_failure();
  commit();
}

bool RecordDatabase::is_flushed() const {
  const auto held = lock();
  return pending_.empty();
}

void RecordDatabase::throw_failure() {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void RecordDatabase::start_thread() {
  if (thread_.joinable()) return;
  try {
    thread_ = std::thread([this] { commit_when_due(); });
  } catch (const std::system_error&) {  // no more threads here: later rows commit what is due
  }
}

void RecordDatabase::commit_when_due() {
  auto held = lock();
  while (!ending_) {
    if (pending_.empty() || failure_) {
      wake_.wait(held);
      continue;
    }
    const auto due = std::max(due_, next_try_);
    if (Clock::now() < due) {
      wake_.wait_until(held, due);
      continue;
    }
    try {
      commit_pending();
    } catch (...) {
      failure_ = std::current_exception();
    }
  }
}

void RecordDatabase::commit_pending() {
  if (!patient_) return commit();
  const auto begin = Clock::now();
  if (begin < next_try_) return;
  try {
    commit();
    if (failing_) log_line(path().string() + ": the record is complete again");
    failing_ = false;
  } catch (const DatabaseError& error) {
    if (!error.may_pass()) throw;
    // Waiting for a lock takes long, and training stands still meanwhile.
    const auto end = Clock::now();
    next_try_ = end + std::max<Clock::duration>(kFlushInterval, 4 * (end - begin));
    if (!failing_) {
      log_warning(
          std::string(error.what()) +
          "; rows of the record wait in memory and are written when that is possible again");
    }
    failing_ = true;
  }
}

void RecordDatabase::commit() {
  if (pending_.empty()) return;
  Transaction transaction(db_);
  apply(pending_);
  transaction.commit();
  pending_.clear();
}

void RecordDatabase::apply(const std::vector<Row>& rows) {
  std::unordered_map<const char*, Statement> statements;
  for (const auto& row : rows) {
    auto found = statements.find(row.sql);
    if (found == statements.end()) found = statements.emplace(row.sql, db_.prepare(row.sql)).first;
    found->second.bind_all(row.values).step();
    found->second.reset();
  }
}

void RecordDatabase::check_pages() const {
  const auto held = lock();
  db_.check_pages();
}

void RecordDatabase::query(const std::string& sql, const std::vector<SqlValue>& parameters,
                           const OnRow& on_row) const {
  const auto held = lock();
  Statement statement = db_.prepare(sql);
  statement.bind_all(parameters);
  std::vector<std::string> names;
  for (int i = 0; i < statement.column_count(); ++i) names.push_back(statement.column_name(i));
  std::vector<SqlValue> values(names.size());
  while (statement.step()) {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = statement.column(static_cast<int>(i));
    try {
      on_row(names, values);
    } catch (const std::bad_variant_access&) {
      throw Error(ErrorKind::kDamaged,
                  path().string() +
                      ": holds NULL or a value of another type where the tables of olmo-harness "
                      "take none: it was altered");
    }
  }
}

}  // namespace olmo::store
