#include "store/database/sqlite.h"

#include <csignal>
#include <filesystem>
#include <fstream>

#include <sys/resource.h>

#include "core/error.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace olmo::store::test {
namespace {

namespace fs = std::filesystem;
using olmo::test::TemporaryDirectory;

/// A database with a write-ahead log and a row, open.
Database written(const fs::path& path) {
  Database db(path, OpenMode::kCreate);
  db.execute("PRAGMA journal_mode = WAL; CREATE TABLE t (x); INSERT INTO t VALUES (1);");
  return db;
}

std::int64_t rows_in(const Database& db) {
  return std::get<std::int64_t>(db.value("SELECT count(*) FROM t"));
}

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST_CASE("reading a database leaves no file beside it", "[store]") {
  const TemporaryDirectory folder, copies;
  const auto path = folder / "a.db", copy = copies / "a.db";
  {
    const Database db = written(path);
    fs::copy_file(path, copy);
    fs::copy_file(folder / "a.db-wal", copies / "a.db-wal");
  }
  for (const auto mode : {OpenMode::kReadOnly, OpenMode::kGlance}) {
    CHECK(rows_in(Database(path, mode)) == 1);
    CHECK(files_in(folder.path()) == 1);
    CHECK(rows_in(Database(copy, mode)) == 1);
    CHECK(files_in(copies.path()) == 2);
  }
}

TEST_CASE("reading a database makes no file beside it for the time being either", "[store]") {
  const TemporaryDirectory folder;
  written(folder / "a.db");
  const Database reader(folder / "a.db", OpenMode::kReadOnly);
  CHECK(rows_in(reader) == 1);
  CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("a reader sees what is written after it has opened the database", "[store]") {
  const TemporaryDirectory folder;
  const auto path = folder / "a.db";
  written(path);
  const Database reader(path, OpenMode::kReadOnly);
  for (std::int64_t rows = 1; rows < 4; ++rows) {
    CHECK(rows_in(reader) == rows);
    Database writer(path, OpenMode::kReadWrite);
    CHECK(rows_in(reader) == rows);
    writer.execute("INSERT INTO t VALUES (1)");
    CHECK(rows_in(reader) == rows + 1);
  }
}

TEST_CASE("a reader of a copy sees what is written to the database afterwards", "[store]") {
  const TemporaryDirectory folder, copies;
  const auto copy = copies / "a.db";
  {
    const Database db = written(folder / "a.db");
    fs::copy_file(folder / "a.db", copy);
    fs::copy_file(folder / "a.db-wal", copies / "a.db-wal");
  }
  const Database reader(copy, OpenMode::kReadOnly);
  CHECK(rows_in(reader) == 1);
  Database(copy, OpenMode::kReadWrite).execute("INSERT INTO t VALUES (1)");
  CHECK(rows_in(reader) == 2);
}

/// No file of this process may be longer than `bytes`.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FileLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

TEST_CASE("an error of the disk is told with the system's reason", "[store]") {
  constexpr rlim_t kLessThanTheIndex = 16 << 10;  // the -shm of a write-ahead log has 32 KiB
  const TemporaryDirectory folder;
  std::string said;
  {
    const FileLimit limit(kLessThanTheIndex);
    try {
      written(folder / "a.db");
    } catch (const Error& error) {
      said = error.what();
    }
  }
  CHECK_THAT(said, Catch::Matchers::Contains("disk I/O error (File too large)"));
}

TEST_CASE("a place where no database can be made is told with the system's reason", "[store]") {
  const TemporaryDirectory folder;
  std::ofstream(folder / "file") << "x";
  const auto said = [](const std::filesystem::path& path) {
    try {
      const Database database(path, OpenMode::kCreate);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kUsage);
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  using Catch::Matchers::Contains;
  CHECK_THAT(said(folder / "absent" / "a.db"),
             Contains("a.db: ") && Contains("absent: No such file"));
  CHECK_THAT(said(folder / "file" / "a.db"),
             Contains("a.db: ") && Contains("file: Not a directory"));
}

TEST_CASE("a statement that is under way while the database is written to says so", "[store]") {
  const TemporaryDirectory folder;
  const auto path = folder / "a.db";
  written(path);
  const Database reader(path, OpenMode::kReadOnly);
  Statement rows = reader.prepare("SELECT x FROM t");
  CHECK(rows.step());
  Database(path, OpenMode::kReadWrite).execute("INSERT INTO t VALUES (1)");
  CHECK_THROWS_WITH(rows.step(), Catch::Matchers::Contains("was written to while it was read"));
}

}  // namespace
}  // namespace olmo::store::test
