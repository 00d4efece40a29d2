// RAII over SQLite's C API: connections, statements, transactions. The only place that turns its
// codes into errors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/error.h"
#include "core/private_folder.h"

struct sqlite3;
struct sqlite3_stmt;

namespace olmo::store {

/// A value of one column: NULL, INTEGER, REAL or TEXT.
using SqlValue = std::variant<std::monostate, std::int64_t, double, std::string>;

template <class T>
SqlValue optional_value(const std::optional<T>& value) {
  return value ? SqlValue(*value) : SqlValue{};
}

/// An error of the database.
class DatabaseError : public Error {
 public:
  DatabaseError(ErrorKind kind, const std::string& message, bool may_pass)
      : Error(kind, message), may_pass_(may_pass) {}
  /// True if the same call may succeed later: the disk is full, fails or is read-only for the
  /// moment, another process holds the database.
  [[nodiscard]] bool may_pass() const noexcept { return may_pass_; }

 private:
  bool may_pass_;
};

/// A prepared statement. Bind, step until false, read columns; reset to run it again.
class Statement {
 public:
  Statement(sqlite3* db, std::string_view sql);

  Statement& bind(int index, const SqlValue& value);  ///< index from 1
  Statement& bind_all(const std::vector<SqlValue>& values);
  /// True while there is a row.
  bool step();
  void reset();
  [[nodiscard]] SqlValue column(int index) const;  ///< index from 0
  [[nodiscard]] std::string text(int index) const { return std::string(text_view(index)); }
  /// Valid until the next step.
  [[nodiscard]] std::string_view text_view(int index) const;
  [[nodiscard]] bool is_null(int index) const;
  [[nodiscard]] std::int64_t integer(int index) const;
  /// NaN for NULL.
  [[nodiscard]] double real(int index) const;
  [[nodiscard]] int column_count() const;
  [[nodiscard]] std::string column_name(int index) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  sqlite3* db_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

enum class OpenMode {
  kReadOnly,
  kReadWrite,
  kCreate,
  /// As kReadOnly, for a short look by somebody who may not change the folder: SQLite leaves two
  /// files beside a database with a write-ahead log, and here it leaves none where nobody writes.
  /// If somebody begins to write during the look, it may show rows of before and after, or fail. It
  /// waits for a writer for two seconds.
  kGlance,
};

/// One connection. Throws Error(kUsage) for a path that cannot be opened or written,
/// Error(kDamaged) for a file that is no sound SQLite database (empty or cut, too), Error(kFailure)
/// for a full disk and the like.
///
/// kReadOnly works without permission to write: SQLite wants to make a file beside a database that
/// was left by a killed process. Where it cannot, the file is read as one that nobody changes if
/// nothing lies in its journal, and else with its journal from a copy in the folder for temporary
/// files.
class Database {
 public:
  Database(const std::filesystem::path& path, OpenMode mode);

  void execute(const std::string& sql);
  [[nodiscard]] Statement prepare(std::string_view sql) const;
  /// The first column of the first row of `sql`.
  [[nodiscard]] SqlValue value(std::string_view sql) const;
  /// Throws Error(kDamaged) unless every page is sound (`PRAGMA quick_check`).
  void check_pages() const;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  struct Close {
    void operator()(sqlite3* db) const;
  };
  void open(const std::string& name, int flags);
  void open_unwritable();
  void open_unchanging();

  std::filesystem::path path_;
  std::optional<PrivateFolder> copy_;  ///< holds the database that is read in its place
  std::unique_ptr<sqlite3, Close> db_;
};

/// BEGIN IMMEDIATE … COMMIT; rolls back when left by an exception.
class Transaction {
 public:
  explicit Transaction(Database& db);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  Database& db_;
  bool open_ = true;
};

}  // namespace olmo::store
