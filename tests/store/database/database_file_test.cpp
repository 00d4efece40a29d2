#include "store/database/database_file.h"

#include <chrono>
#include <fstream>

#include "store/database/sqlite.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace olmo::store::test {
namespace {

namespace fs = std::filesystem;
using olmo::test::TemporaryDirectory;

TEST_CASE("the state of a database is another one after each write to it", "[store]") {
  const TemporaryDirectory folder;
  const auto path = folder / "a.db";
  Database db(path, OpenMode::kCreate);
  db.execute("PRAGMA journal_mode = WAL; CREATE TABLE t (x);");
  const auto begin = state_of(path);
  CHECK(state_of(path) == begin);
  db.execute("INSERT INTO t VALUES (1)");
  CHECK(state_of(path).file == begin.file);
  CHECK_FALSE(state_of(path).log == begin.log);
  db.execute("PRAGMA wal_checkpoint(TRUNCATE)");
  CHECK_FALSE(state_of(path).file == begin.file);
  CHECK(state_of(path).log == DatabaseState::File{});
}

TEST_CASE("the state of a database is another one where another file takes its place", "[store]") {
  const TemporaryDirectory folder;
  for (const char* name : {"a.db", "b.db"}) std::ofstream(folder / name) << "same";
  const auto time = fs::last_write_time(folder / "a.db");
  fs::last_write_time(folder / "b.db", time);
  const auto before = state_of(folder / "a.db");
  fs::rename(folder / "b.db", folder / "a.db");
  CHECK_FALSE(state_of(folder / "a.db") == before);
}

TEST_CASE("the header of a database tells whether it has a write-ahead log", "[store]") {
  const TemporaryDirectory folder;
  for (const bool log : {false, true}) {
    const auto path = folder / (log ? "log.db" : "none.db");
    Database(path, OpenMode::kCreate)
        .execute(std::string("PRAGMA journal_mode = ") + (log ? "WAL" : "DELETE") +
                 "; CREATE TABLE t (x);");
    const DatabaseHeader header(path);
    CHECK_NOTHROW(header.require_whole());
    CHECK(header.has_log() == log);
  }
}

}  // namespace
}  // namespace olmo::store::test
