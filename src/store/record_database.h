#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "store/sqlite.h"

namespace olmo::store {

/// A database of store/schema.h: the file that RunDb and EvaluationDb write their rows to, alone or
/// both at once.
///
/// Durability: rows are collected for at most half a second and then committed with a sync to disk,
/// in the order they were added, so that a crash at any moment loses less than the last second. WAL
/// journal where the file system has shared memory, rollback journal otherwise (Lustre, NFS and
/// other network file systems). Several processes may write to one database: a write waits up to
/// 30 s for another's.
class RecordDatabase {
 public:
  /// kCreate makes the file and its tables if there is none; writers bring an older schema up to
  /// date. Throws Error(kDamaged) for a foreign or damaged file and for one of a newer schema,
  /// Error(kUsage) for a path that cannot be opened.
  RecordDatabase(const std::filesystem::path& path, OpenMode mode);
  /// Flushes; rows that cannot be written any more are reported on stderr.
  ~RecordDatabase();
  RecordDatabase(const RecordDatabase&) = delete;
  RecordDatabase& operator=(const RecordDatabase&) = delete;

  /// From here on add() and write() keep rows that cannot be written for the moment (a full disk, a
  /// lock, …), say so once, and try again with later ones, in order; only flush() throws then. For
  /// training, which must neither end for it nor lose a row.
  void outlast_failures() { patient_ = true; }

  /// A row to be written: `sql` lives as long as the program.
  struct Row {
    const char* sql;
    std::vector<SqlValue> values;
  };
  /// Rows of one call are committed together, at most half a second later.
  void add(std::vector<Row> rows);
  /// As add(), and commits at once everything that was added.
  void write(std::vector<Row> rows);
  void flush();
  /// False only while rows wait that could not be written.
  [[nodiscard]] bool is_flushed() const { return pending_.empty(); }

  /// Rows of `sql` with its column names; `on_row` gets (names, values).
  using OnRow = std::function<void(const std::vector<std::string>&, const std::vector<SqlValue>&)>;
  void query(const std::string& sql, const std::vector<SqlValue>& parameters,
             const OnRow& on_row) const;

  [[nodiscard]] Database& connection() { return db_; }
  [[nodiscard]] const Database& connection() const { return db_; }
  [[nodiscard]] const std::filesystem::path& path() const { return db_.path(); }
  /// 1 or later: a file opened for reading keeps its older schema.
  [[nodiscard]] std::int64_t schema_version() const { return schema_version_; }
  [[nodiscard]] const std::string& journal_mode() const { return journal_mode_; }

 private:
  void check_identity(OpenMode mode);
  void migrate();
  void choose_journal();
  /// flush(), or the same with patience.
  void commit_pending();

  Database db_;
  std::int64_t schema_version_ = 0;
  std::string journal_mode_;
  std::vector<Row> pending_;
  bool patient_ = false;
  bool failing_ = false;  ///< the last try failed, and that has been said
  std::chrono::steady_clock::time_point last_flush_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point next_try_{};
};

/// False if nothing is at `path`, or a database in which no table was made before its process died:
/// nothing was recorded there. Throws as Database.
bool holds_tables(const std::filesystem::path& path);

/// Now, as `2026-01-31T23:59:59.123Z`.
std::string utc_now();

/// A name that no other record has: `20260131T235959-` and eight hexadecimal digits.
std::string new_record_id();

}  // namespace olmo::store
