#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "store/database/sqlite.h"

namespace olmo::store {

/// The path of a database in the memory of this process, gone with its object.
inline constexpr char kInMemory[] = ":memory:";

/// A database of store/database/schema.h: the file that RunDb and EvaluationDb write their rows to,
/// alone or both at once.
///
/// Durability: rows are collected for at most half a second and then committed with a sync to disk,
/// in the order they were added, so that a crash at any moment loses less than the last second. A
/// thread does that, since the next row may come much later: a step can take a minute. WAL journal
/// where the file system has shared memory, rollback journal otherwise (Lustre, NFS and other
/// network file systems). Several processes may write to one database: a write waits up to 30 s for
/// another's.
class RecordDatabase {
 public:
  /// kCreate makes the file and its tables if there is none; writers bring an older schema up to
  /// date. Throws Error(kDamaged) for a foreign or damaged file and for one of a newer schema,
  /// Error(kUsage) for a path that cannot be opened.
  RecordDatabase(const std::filesystem::path& path, OpenMode mode);
  /// Ends the thread and flushes; rows that cannot be written any more are reported on stderr.
  ~RecordDatabase();
  RecordDatabase(const RecordDatabase&) = delete;
  RecordDatabase& operator=(const RecordDatabase&) = delete;

  /// From here on add() and write() keep rows that cannot be written for the moment (a full disk, a
  /// lock, …), say so once, and try again with later ones, in order; only flush() throws then. For
  /// training, which must neither end for it nor lose a row.
  void outlast_failures();

  /// A row to be written: `sql` lives as long as the program.
  struct Row {
    const char* sql;
    std::vector<SqlValue> values;
  };
  /// Rows of one call are committed together, at most half a second later. An error of that commit
  /// is thrown by the next call of add(), write() or flush().
  void add(std::vector<Row> rows);
  /// As add(), and commits at once everything that was added.
  void write(std::vector<Row> rows);
  /// As write(), of rows that `make` returns after reading, while no other process can write, what
  /// they depend on. Throws whatever outlast_failures() says.
  void write_after(const std::function<std::vector<Row>()>& make);
  void flush();
  /// False only while rows wait that could not be written.
  [[nodiscard]] bool is_flushed() const;

  /// Rows of `sql` with its column names; `on_row` gets (names, values).
  using OnRow = std::function<void(const std::vector<std::string>&, const std::vector<SqlValue>&)>;
  void query(const std::string& sql, const std::vector<SqlValue>& parameters,
             const OnRow& on_row) const;

  /// Throws Error(kDamaged) unless every page is sound.
  void check_pages() const;

  /// To be held while a statement of connection() is stepped: the thread that commits has the same
  /// connection.
  [[nodiscard]] std::unique_lock<std::recursive_mutex> lock() const {
    return std::unique_lock(mutex_);
  }
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
  void append(std::vector<Row> rows);
  void apply(const std::vector<Row>& rows);
  /// What is pending in one transaction.
  void commit();
  /// commit(), or the same with patience.
  void commit_pending();
  void start_thread();
  /// What the thread does until `ending_`.
  void commit_when_due();
  void throw_failure();

  using Clock = std::chrono::steady_clock;

  mutable std::recursive_mutex mutex_;  ///< of all that follows
  Database db_;
  std::int64_t schema_version_ = 0;
  std::string journal_mode_;
  std::vector<Row> pending_;
  Clock::time_point due_{};  ///< when what is pending must be committed
  bool patient_ = false;
  bool failing_ = false;  ///< the last try failed, and that has been said
  Clock::time_point next_try_{};
  std::exception_ptr failure_;  ///< of the thread; it waits until somebody has heard of it
  bool ending_ = false;
  std::condition_variable_any wake_;
  std::thread thread_;  ///< begun by the first add()
};

/// False if nothing is at `path`, or a database in which no table was made before its process died:
/// nothing was recorded there. Throws as Database.
bool holds_tables(const std::filesystem::path& path);

/// The ids of `what`s (run, evaluation) that begin with `prefix`: the latest first, at most three.
std::vector<std::string> ids_from(const RecordDatabase& records, const std::string& what,
                                  const std::string& prefix);
/// The id that `prefix` names unambiguously among `ids` (of ids_from); empty: the latest. Throws
/// Error(kUsage).
std::string one_id_of(const RecordDatabase& records, const std::string& what,
                      const std::string& prefix, const std::vector<std::string>& ids);

/// Now, as `2026-01-31T23:59:59.123Z`, with up to six digits of a second.
std::string utc_now(int digits = 3);

/// A name that no other record has: `20260131T235959-` and eight hexadecimal digits.
std::string new_record_id();

}  // namespace olmo::store
