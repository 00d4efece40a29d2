#include "store/database/sqlite.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include <sqlite3.h>
#include <unistd.h>

#include "core/error.h"
#include "core/files/unfinished_output.h"
#include "store/database/told_reads.h"

namespace olmo::store {
namespace {

namespace fs = std::filesystem;

/// What a result code of SQLite means.
struct Meaning {
  int code;
  ErrorKind kind;
  bool may_pass;
  const char* advice;
};

constexpr const char* kSaveRows =
    " (it is damaged, or not a run database; `sqlite3 FILE .recover` may save its rows)";
constexpr std::array<Meaning, 12> kMeanings = {{
    {SQLITE_CORRUPT, ErrorKind::kDamaged, false, kSaveRows},
    {SQLITE_NOTADB, ErrorKind::kDamaged, false, kSaveRows},
    {SQLITE_SCHEMA, ErrorKind::kDamaged, false,
     " (its tables are not those of its version: they were altered)"},
    {SQLITE_FORMAT, ErrorKind::kDamaged, false, ""},
    {SQLITE_CANTOPEN, ErrorKind::kUsage, true,
     " (does its folder exist, and may you write there?)"},
    {SQLITE_READONLY, ErrorKind::kUsage, true, " (the file or its folder is read-only)"},
    {SQLITE_PERM, ErrorKind::kUsage, false, ""},
    {SQLITE_FULL, ErrorKind::kFailure, true, ""},
    {SQLITE_BUSY, ErrorKind::kFailure, true, " (another process holds the database)"},
    {SQLITE_IOERR, ErrorKind::kFailure, true, ""},
    {SQLITE_LOCKED, ErrorKind::kFailure, true, ""},
    {SQLITE_NOMEM, ErrorKind::kFailure, true, ""},
}};

Meaning meaning_of(int code) {
  const auto found = std::ranges::find(kMeanings, code & 0xff, &Meaning::code);
  return found == kMeanings.end() ? Meaning{code, ErrorKind::kFailure, false, ""} : *found;
}

/// SQLite would count the bytes of every allocation under one lock, for which threads that read
/// many databases wait longer than for the disk. Nobody asks for the count. Only before the first
/// connection is this heeded.
void configure_once() {
  [[maybe_unused]] static const int configured = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

/// What the system said of a call that SQLite tells as "disk I/O error" alone (a full disk, too,
/// where it was the index of the write-ahead log that found no room), or as "unable to open".
std::string reason_of(sqlite3* db, int code) {
  const int error = sqlite3_system_errno(db), primary = code & 0xff;
  const bool tells =
      error != 0 && (primary == SQLITE_IOERR || (primary == SQLITE_CANTOPEN && error != ENOENT));
  return tells ? std::string(" (") + std::strerror(error) + ")" : meaning_of(code).advice;
}

/// Why a database cannot be opened. Where SQLite may not write it tries to read, and knows only why
/// that failed.
std::string reason_to_refuse(const fs::path& path, sqlite3* db, int code) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if ((code & 0xff) == SQLITE_CANTOPEN && ::access(path.c_str(), F_OK) != 0 &&
      ::access((folder / "").c_str(), W_OK | X_OK) != 0)  // with its slash: a folder it must be
    return " (" + folder.string() + ": " + std::strerror(errno) + ")";
  return reason_of(db, code);
}

[[noreturn]] void fail(sqlite3* db, int code) {
  const char* name = sqlite3_db_filename(db, "main");
  const Meaning meaning = meaning_of(code);
  throw DatabaseError(meaning.kind,
                      std::string(name == nullptr || *name == 0 ? "database" : name) + ": " +
                          sqlite3_errmsg(db) + reason_of(db, code),
                      meaning.may_pass);
}

/// Why a check of pages could not read one, where its text tells that: "…: unable to get the page.
/// error code=266".
int code_of_check(const std::string& text) {
  constexpr std::string_view kMark = "error code=";
  const auto at = text.find(kMark);
  return at == std::string::npos ? SQLITE_OK : std::atoi(text.c_str() + at + kMark.size());
}

/// A path as SQLite's URIs want it.
std::string uri_of(const fs::path& path) {
  std::string uri = "file:";
  for (const char c : fs::absolute(path).string()) {
    if (c == '?' || c == '#' || c == '%') {
      char code[4];
      std::snprintf(code, sizeof code, "%%%02X", static_cast<unsigned>(c));
      uri += code;
    } else {
      uri += c;
    }
  }
  return uri;
}

bool has_index(const fs::path& path) {
  fs::path index = path;
  index += "-shm";
  std::error_code ignored;
  return fs::exists(index, ignored);
}

PrivateFolder copy_with_journals(const fs::path& path) {
  const UnfinishedOutput unfinished("a copy of " + path.string());
  PrivateFolder folder("olmo-harness");
  try {
    fs::copy_file(path, folder.path() / path.filename());
    for (const auto& journal : journals_of(path))
      fs::copy_file(journal, folder.path() / journal.filename());
  } catch (const fs::filesystem_error& error) {
    throw Error(ErrorKind::kFailure, path.string() +
                                         ": to read it without a file beside it, a copy is "
                                         "needed, which cannot be made: " +
                                         error.what());
  }
  return folder;
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

Statement::Statement(sqlite3* db, std::string_view sql, std::shared_ptr<const SeenDatabase> seen)
    : db_(db), seen_(std::move(seen)) {
  sqlite3_stmt* raw = nullptr;
  const int code = sqlite3_prepare_v2(db, sql.data(), static_cast<int>(sql.size()), &raw, nullptr);
  statement_.reset(raw);
  if (code == SQLITE_OK) return;
  // Our statements fit the tables of every version, so the file's are others.
  const bool lacks = std::string_view(sqlite3_errmsg(db)).starts_with("no such ");
  fail(db, lacks ? SQLITE_SCHEMA : code);
}

Statement& Statement::bind(int index, const SqlValue& value) {
  sqlite3_stmt* statement = statement_.get();
  int code = SQLITE_OK;
  if (std::holds_alternative<std::monostate>(value)) {
    code = sqlite3_bind_null(statement, index);
  } else if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    code = sqlite3_bind_int64(statement, index, *integer);
  } else if (const auto* real = std::get_if<double>(&value)) {
    code = sqlite3_bind_double(statement, index, *real);
  } else {
    const auto& text = std::get<std::string>(value);
    code = sqlite3_bind_text64(statement, index, text.data(), text.size(), SQLITE_TRANSIENT,
                               SQLITE_UTF8);
  }
  if (code != SQLITE_OK) fail(db_, code);
  return *this;
}

Statement& Statement::bind_all(const std::vector<SqlValue>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) bind(static_cast<int>(i) + 1, values[i]);
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(statement_.get());
  // Rows come at most by the million, and a look at the file costs more than one of them.
  if (seen_ && (code != SQLITE_ROW || !stepped_)) require_unchanged();
  stepped_ = true;
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) fail(db_, code);
  return false;
}

/// A log that has begun changes nothing in the file yet.
void Statement::require_unchanged() const {
  if (state_of(seen_->path).file == seen_->state.file) return;
  throw DatabaseError(ErrorKind::kFailure,
                      seen_->path.string() +
                          ": was written to while it was read, so what was read may be of before "
                          "and after: read it again",
                      true);
}

void Statement::reset() {
  sqlite3_reset(statement_.get());
  stepped_ = false;
}

SqlValue Statement::column(int index) const {
  sqlite3_stmt* statement = statement_.get();
  switch (sqlite3_column_type(statement, index)) {
    case SQLITE_INTEGER:
      return static_cast<std::int64_t>(sqlite3_column_int64(statement, index));
    case SQLITE_FLOAT:
      return sqlite3_column_double(statement, index);
    case SQLITE_NULL:
      return std::monostate{};
    default:
      return text(index);
  }
}

std::string_view Statement::text_view(int index) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), index));
  if (bytes == nullptr) return {};
  return {bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), index))};
}

bool Statement::is_null(int index) const {
  return sqlite3_column_type(statement_.get(), index) == SQLITE_NULL;
}

double Statement::real(int index) const {
  return is_null(index) ? std::numeric_limits<double>::quiet_NaN()
                        : sqlite3_column_double(statement_.get(), index);
}

std::int64_t Statement::integer(int index) const {
  return sqlite3_column_int64(statement_.get(), index);
}
int Statement::column_count() const { return sqlite3_column_count(statement_.get()); }
std::string Statement::column_name(int index) const {
  return sqlite3_column_name(statement_.get(), index);
}

void Database::Close::operator()(sqlite3* db) const { sqlite3_close_v2(db); }

Database::Database(const std::filesystem::path& path, OpenMode mode) : path_(path), mode_(mode) {
  if (mode == OpenMode::kReadOnly || mode == OpenMode::kGlance) {
    connection_ = open_to_read();
    return;
  }
  int flags = SQLITE_OPEN_READWRITE;
  if (mode == OpenMode::kCreate)
    flags |= SQLITE_OPEN_CREATE;
  else
    DatabaseHeader(path).require_whole();
  connection_ = open(path.string(), flags);
}

Database::Connection Database::open(const std::string& name, int flags) const {
  configure_once();
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(name.c_str(), &raw, flags, told_reads());
  Connection connection;
  connection.db.reset(raw);
  if (code != SQLITE_OK) {
    const Meaning meaning = meaning_of(code);
    throw DatabaseError(meaning.kind,
                        path_.string() + ": the run database cannot be opened: " +
                            sqlite3_errstr(code) + reason_to_refuse(path_, raw, code),
                        meaning.may_pass);
  }
  sqlite3_busy_timeout(raw, mode_ == OpenMode::kGlance ? 2'000 : 30'000);
  sqlite3_extended_result_codes(raw, 1);
  return connection;
}

// A reader belongs to one thread, so no call of its millions has to take SQLite's lock.
constexpr int kReading = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX;

Database::Connection Database::open_to_read() const {
  // First of all: what is written from here on is noticed.
  const auto seen =
      std::make_shared<const SeenDatabase>(SeenDatabase{.path = path_, .state = state_of(path_)});
  const DatabaseHeader header(path_);
  header.require_whole();
  const bool log_is_empty = seen->state.log == DatabaseState::File{};
  if (header.has_log() && log_is_empty) return open_unchanging(seen);
  if (!log_is_empty && !has_index(path_)) return open_copy(seen);
  Connection connection = open(path_.string(), kReading);
  const int code = sqlite3_exec(connection.db.get(), "SELECT count(*) FROM sqlite_schema", nullptr,
                                nullptr, nullptr);
  // Whoever holds it has been waited for; the next statement would wait as long again.
  if ((code & 0xff) == SQLITE_BUSY) fail(connection.db.get(), code);
  if ((code & 0xff) != SQLITE_CANTOPEN && (code & 0xff) != SQLITE_READONLY) return connection;
  // Of a process that was killed, where nothing can be written.
  connection = {};
  return journals_of(path_).empty() ? open_unchanging(seen) : open_copy(seen);
}

Database::Connection Database::open_unchanging(std::shared_ptr<const SeenDatabase> seen) const {
  Connection connection = open(uri_of(path_) + "?immutable=1", kReading | SQLITE_OPEN_URI);
  connection.seen = std::move(seen);
  return connection;
}

Database::Connection Database::open_copy(std::shared_ptr<const SeenDatabase> seen) const {
  auto copy = copy_with_journals(path_);
  Connection connection = open((copy.path() / path_.filename()).string(), SQLITE_OPEN_READWRITE);
  // Its files are needed no more once the journal lies in the one that is open, and a process that
  // is killed removes nothing.
  if (sqlite3_exec(connection.db.get(), "PRAGMA journal_mode = DELETE", nullptr, nullptr,
                   nullptr) == SQLITE_OK) {
    std::error_code ignored;
    fs::remove_all(copy.path(), ignored);
  }
  connection.seen = std::move(seen);
  connection.copy = std::move(copy);
  return connection;
}

const Database::Connection& Database::current() const {
  if (connection_.seen && connection_.seen->state != state_of(path_)) connection_ = open_to_read();
  return connection_;
}

void Database::execute(const std::string& sql) {
  sqlite3* db = current().db.get();
  const int code = sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(db, code);
}

Statement Database::prepare(std::string_view sql) const {
  const Connection& connection = current();
  return {connection.db.get(), sql, connection.copy ? nullptr : connection.seen};
}

SqlValue Database::value(std::string_view sql) const {
  Statement statement = prepare(sql);
  return statement.step() ? statement.column(0) : SqlValue{};
}

void Database::check_pages() const {
  const SqlValue found = value("PRAGMA quick_check(1)");
  const auto* text = std::get_if<std::string>(&found);
  if (text && *text == "ok") return;
  if (text == nullptr)
    throw Error(ErrorKind::kDamaged, path_.string() + ": its pages cannot be checked");
  if (const int code = code_of_check(*text); code != SQLITE_OK) {
    const Meaning meaning = meaning_of(code);
    throw DatabaseError(meaning.kind, path_.string() + ": " + sqlite3_errstr(code) + meaning.advice,
                        meaning.may_pass);
  }
  // The first line names the database, of which there is one.
  throw Error(ErrorKind::kDamaged, path_.string() + ": " + text->substr(text->find('\n') + 1));
}

Transaction::Transaction(Database& db) : db_(db) { db_.execute("BEGIN IMMEDIATE"); }

Transaction::~Transaction() {
  if (!open_) return;
  try {
    db_.execute("ROLLBACK");
  } catch (const std::exception&) {  // SQLite has rolled back by itself (full disk, no memory); the
                                     // first error is on its way
  }
}

void Transaction::commit() {
  db_.execute("COMMIT");
  open_ = false;
}

}  // namespace olmo::store
