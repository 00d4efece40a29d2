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
#include "core/files/private_folder.h"
#include "store/database/database_file.h"

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

/// A database, and as what it was found when it was opened.
struct SeenDatabase {
  std::filesystem::path path;
  DatabaseState state;
};

/// A prepared statement. Bind, step until false, read columns; reset to run it again.
class Statement {
 public:
  /// `seen`: SQLite takes no locks on that file, and step() throws if it was written to since.
  Statement(sqlite3* db, std::string_view sql, std::shared_ptr<const SeenDatabase> seen = nullptr);

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
  void require_unchanged() const;

  sqlite3* db_;
  std::shared_ptr<const SeenDatabase> seen_;
  bool stepped_ = false;  ///< since it was prepared or reset
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

enum class OpenMode {
  kReadOnly,
  kReadWrite,
  kCreate,
  /// As kReadOnly, for a short look: it waits for a writer for two seconds.
  kGlance,
};

/// One connection. Throws Error(kUsage) for a path that cannot be opened or written,
/// Error(kDamaged) for a file that is no sound SQLite database (empty or cut, too), Error(kFailure)
/// for a full disk and the like.
///
/// Reading needs no permission to write, and leaves no file in the folder. SQLite would make two
/// beside a database with a write-ahead log, and keep them: whoever may not write to these could no
/// longer write to the database. So a database in whose log nothing lies is read as a file that
/// nobody changes, a log without its index (`-shm`) from a copy in the folder for temporary files,
/// and only what a process has open, or had when it was killed, in the usual way. Once somebody
/// writes to a file of the first two kinds, the next statement opens it anew; one that is under way
/// throws Error(kFailure).
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
  struct Connection {
    std::optional<PrivateFolder> copy;  ///< holds what is read in its place
    std::unique_ptr<sqlite3, Close> db;
    std::shared_ptr<const SeenDatabase> seen;  ///< null: SQLite sees changes by itself
  };
  [[nodiscard]] Connection open(const std::string& name, int flags) const;
  [[nodiscard]] Connection open_to_read() const;
  [[nodiscard]] Connection open_unchanging(std::shared_ptr<const SeenDatabase> seen) const;
  [[nodiscard]] Connection open_copy(std::shared_ptr<const SeenDatabase> seen) const;
  /// That of the next statement.
  [[nodiscard]] const Connection& current() const;

  std::filesystem::path path_;
  OpenMode mode_;
  mutable Connection connection_;  ///< a reader's is another one once the file has changed
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
