#include "store/sqlite.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>

#include <sqlite3.h>

#include "core/error.h"
#include "core/input_file.h"

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
    {SQLITE_FULL, ErrorKind::kFailure, true, " (the disk is full)"},
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

[[noreturn]] void fail(sqlite3* db, int code) {
  const char* name = sqlite3_db_filename(db, "main");
  const Meaning meaning = meaning_of(code);
  throw DatabaseError(meaning.kind,
                      std::string(name == nullptr || *name == 0 ? "database" : name) + ": " +
                          sqlite3_errmsg(db) + meaning.advice,
                      meaning.may_pass);
}

/// What a killed process left of changes that are not, or only half, in the file itself.
std::vector<fs::path> journals_of(const fs::path& path) {
  std::vector<fs::path> found;
  for (const char* suffix : {"-wal", "-journal"}) {
    fs::path journal = path;
    journal += suffix;
    std::error_code error;
    if (fs::file_size(journal, error) > 0 && !error) found.push_back(journal);
  }
  return found;
}

/// The start of a database: what SQLite's file format says of the whole file.
struct Header {
  explicit Header(const fs::path& path) {
    InputFile file(path);
    file_bytes = file.size();
    is_whole = file.read(bytes) == bytes.size();
  }

  [[nodiscard]] std::uint64_t number(std::size_t at, std::size_t width) const {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < width; ++i)
      value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
    return value;
  }

  /// No control character but those of lines, as a binary file soon has one.
  [[nodiscard]] bool is_text() const {
    const auto read = std::min<std::uint64_t>(bytes.size(), file_bytes);
    return std::all_of(
        bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(read), [](char c) {
          return static_cast<unsigned char>(c) >= ' ' || c == '\n' || c == '\r' || c == '\t';
        });
  }

  std::array<char, 100> bytes{};
  bool is_whole = false;  ///< else the file is shorter
  std::uint64_t file_bytes = 0;
};

/// SQLite tells an empty file from a database only by its lack of tables, and a cut one only once
/// it meets a page that is not there. With a journal the pages may be there.
void require_whole(const fs::path& path, const Header& header) {
  if (header.file_bytes == 0) {
    throw Error(ErrorKind::kDamaged,
                path.string() +
                    ": is empty: it was made and nothing was ever written to it, "
                    "or it was cut");
  }
  if (header.is_text())
    throw Error(ErrorKind::kDamaged,
                path.string() +
                    ": is a text and no run database; of another trainer's log "
                    "`olmo-harness runs import` makes one");
  if (!header.is_whole || !journals_of(path).empty())
    return;  // SQLite says what is wrong, if anything
  const std::uint64_t page = header.number(16, 2) == 1 ? 65536 : header.number(16, 2);
  const bool counted = header.number(24, 4) == header.number(92, 4);  // else an old SQLite wrote it
  const std::uint64_t expected = header.number(28, 4) * page;
  if (!counted || header.file_bytes >= expected) return;
  throw Error(ErrorKind::kDamaged, path.string() + ": is cut: it has " +
                                       std::to_string(header.file_bytes) + " bytes of " +
                                       std::to_string(expected) +
                                       " (`sqlite3 FILE .recover` may save rows)");
}

/// Whether a database with a write-ahead log was closed by its last user, who removes the log: all
/// rows are in the file.
bool is_closed_with_log(const fs::path& path, const Header& header) {
  fs::path log = path;
  log += "-wal";
  std::error_code ignored;
  constexpr std::size_t kFormatOfWriter = 18;
  return header.is_whole && header.number(kFormatOfWriter, 1) == 2 && !fs::exists(log, ignored);
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

PrivateFolder copy_with_journals(const fs::path& path) {
  PrivateFolder folder("olmo-harness");
  try {
    fs::copy_file(path, folder.path() / path.filename());
    for (const auto& journal : journals_of(path))
      fs::copy_file(journal, folder.path() / journal.filename());
  } catch (const fs::filesystem_error& error) {
    throw Error(ErrorKind::kFailure, path.string() +
                                         ": its folder cannot be written to, and a copy "
                                         "to read cannot be made: " +
                                         error.what());
  }
  return folder;
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

Statement::Statement(sqlite3* db, std::string_view sql) : db_(db) {
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
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) fail(db_, code);
  return false;
}

void Statement::reset() { sqlite3_reset(statement_.get()); }

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

Database::Database(const std::filesystem::path& path, OpenMode mode) : path_(path) {
  const bool reads = mode == OpenMode::kReadOnly || mode == OpenMode::kGlance;
  int flags = SQLITE_OPEN_READWRITE;
  // A reader belongs to one thread, so no call of its millions has to take SQLite's lock.
  if (reads) flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX;
  if (mode == OpenMode::kCreate) flags |= SQLITE_OPEN_CREATE;
  if (mode != OpenMode::kCreate) {
    const Header header(path);
    require_whole(path, header);
    if (mode == OpenMode::kGlance && is_closed_with_log(path, header)) {
      open_unchanging();
      return;
    }
  }
  open(path.string(), flags);
  if (mode == OpenMode::kGlance) sqlite3_busy_timeout(db_.get(), 2'000);
  if (reads) open_unwritable();
}

void Database::open(const std::string& name, int flags) {
  configure_once();
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(name.c_str(), &raw, flags, nullptr);
  db_.reset(raw);
  if (code != SQLITE_OK) {
    const Meaning meaning = meaning_of(code);
    throw DatabaseError(meaning.kind,
                        path_.string() + ": the run database cannot be opened: " +
                            sqlite3_errstr(code) + meaning.advice,
                        meaning.may_pass);
  }
  sqlite3_busy_timeout(raw, 30'000);
  sqlite3_extended_result_codes(raw, 1);
}

void Database::open_unwritable() {
  const int code =
      sqlite3_exec(db_.get(), "SELECT count(*) FROM sqlite_schema", nullptr, nullptr, nullptr);
  // Whoever holds it has been waited for; the next statement would wait as long again.
  if ((code & 0xff) == SQLITE_BUSY) fail(db_.get(), code);
  if ((code & 0xff) != SQLITE_CANTOPEN && (code & 0xff) != SQLITE_READONLY) return;
  db_.reset();
  if (journals_of(path_).empty()) {
    open_unchanging();
    return;
  }
  copy_ = copy_with_journals(path_);
  open((copy_->path() / path_.filename()).string(), SQLITE_OPEN_READWRITE);
}

void Database::open_unchanging() {
  open(uri_of(path_) + "?immutable=1",
       SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX);
}

void Database::execute(const std::string& sql) {
  const int code = sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(db_.get(), code);
}

Statement Database::prepare(std::string_view sql) const { return {db_.get(), sql}; }

SqlValue Database::value(std::string_view sql) const {
  Statement statement = prepare(sql);
  return statement.step() ? statement.column(0) : SqlValue{};
}

void Database::check_pages() const {
  const SqlValue found = value("PRAGMA quick_check(1)");
  const auto* text = std::get_if<std::string>(&found);
  if (text && *text == "ok") return;
  throw Error(ErrorKind::kDamaged,
              path_.string() + ": " + (text ? *text : "its pages cannot be checked"));
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
