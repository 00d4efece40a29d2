#include "store/database/record_database.h"

#include <fstream>
#include <thread>

#include <sys/mount.h>

#include "core/error.h"
#include "store/database/sqlite.h"
#include "support/catch.h"
#include "support/forked.h"
#include "support/happens.h"
#include "support/small_disk.h"
#include "support/temporary_directory.h"

namespace olmo::store::test {
namespace {

namespace fs = std::filesystem;
using olmo::test::kNotPermitted;
using olmo::test::TemporaryDirectory;
using olmo::test::with_small_disk;

constexpr char kInsert[] = "INSERT INTO runs VALUES (?, ?, '', 'running', '{}', 'd', 1, 1, 1, 2)";

std::vector<RecordDatabase::Row> a_row(int number) {
  return {{kInsert, {std::to_string(number), std::string(100'000, 'x')}}};
}

std::int64_t runs_in(const RecordDatabase& db) {
  return std::get<std::int64_t>(db.connection().value("SELECT count(*) FROM runs"));
}

void fill(RecordDatabase& db, bool full) {
  const auto held = db.lock();
  db.connection().execute(full ? "PRAGMA max_page_count = 1" : "PRAGMA max_page_count = 100000");
}

std::string error_of_reading(const fs::path& path, ErrorKind kind) {
  try {
    const RecordDatabase db(path, OpenMode::kReadOnly);
  } catch (const Error& error) {
    CHECK(error.kind() == kind);
    return error.what();
  }
  return "no error";
}

/// Leaves the database as a killed process does: its rows lie in the journal.
void write_and_die(const fs::path& path) {
  const pid_t child = olmo::test::fork_briefly();
  if (child == 0) {
    RecordDatabase db(path, OpenMode::kCreate);
    db.connection().execute("PRAGMA wal_autocheckpoint = 0");
    db.write(a_row(1));
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
}

}  // namespace

TEST_CASE("rows that a full disk refuses wait and are written in order when there is room",
          "[store]") {
  const TemporaryDirectory folder;
  RecordDatabase db(folder / "run.db", OpenMode::kCreate);
  db.outlast_failures();
  db.write(a_row(1));
  fill(db, true);
  db.write(a_row(2));
  db.write(a_row(3));
  CHECK_FALSE(db.is_flushed());
  CHECK(runs_in(db) == 1);
  CHECK_THROWS_AS(db.flush(), DatabaseError);
  fill(db, false);
  db.flush();
  CHECK(db.is_flushed());
  CHECK(runs_in(db) == 3);
}

TEST_CASE("a full disk is told once", "[store]") {
  const TemporaryDirectory folder;
  RecordDatabase db(folder / "run.db", OpenMode::kCreate);
  fill(db, true);
  try {
    db.write(a_row(1));
    db.flush();
    FAIL("there was room");
  } catch (const DatabaseError& error) {
    const std::string text = error.what();
    CHECK(text.find("full") != std::string::npos);
    CHECK(text.find("full") == text.rfind("full"));
  }
}

TEST_CASE("without leave to wait, a row that cannot be written is an error at once", "[store]") {
  const TemporaryDirectory folder;
  RecordDatabase db(folder / "run.db", OpenMode::kCreate);
  fill(db, true);
  CHECK_THROWS_AS(db.write(a_row(1)), DatabaseError);
  fill(db, false);
}

TEST_CASE("a row that nothing follows is in the file soon", "[store]") {
  const TemporaryDirectory folder;
  RecordDatabase db(folder / "run.db", OpenMode::kCreate);
  const Database reader(folder / "run.db", OpenMode::kReadOnly);
  const auto rows = [&] {
    return std::get<std::int64_t>(reader.value("SELECT count(*) FROM runs"));
  };
  db.add(a_row(1));
  CHECK(olmo::test::happens([&] { return rows() == 1; }));
  db.add(a_row(2));
  CHECK(olmo::test::happens([&] { return rows() == 2; }));
}

TEST_CASE("an error of writing rows in the background is told by the next call", "[store]") {
  const TemporaryDirectory folder;
  RecordDatabase db(folder / "run.db", OpenMode::kCreate);
  fill(db, true);
  db.add(a_row(1));
  CHECK(olmo::test::happens([&] {
    try {
      db.add({});
    } catch (const DatabaseError& error) {
      return error.may_pass();
    }
    return false;
  }));
  fill(db, false);
  db.flush();
  CHECK(runs_in(db) == 1);
}

TEST_CASE("rows that the disk refuses in the background are written once it takes them",
          "[store]") {
  const TemporaryDirectory folder;
  RecordDatabase db(folder / "run.db", OpenMode::kCreate);
  db.outlast_failures();
  db.write(a_row(1));
  fill(db, true);
  db.add(a_row(2));
  const Database reader(folder / "run.db", OpenMode::kReadOnly);
  fill(db, false);
  CHECK(olmo::test::happens([&] { return db.is_flushed(); }));
  CHECK(std::get<std::int64_t>(reader.value("SELECT count(*) FROM runs")) == 2);
}

TEST_CASE("rows of several threads and reads meanwhile do not disturb each other", "[store]") {
  const TemporaryDirectory folder;
  RecordDatabase db(folder / "run.db", OpenMode::kCreate);
  std::thread other([&] {
    for (int i = 0; i < 50; ++i) db.add(a_row(1000 + i));
  });
  for (int i = 0; i < 50; ++i) {
    db.add(a_row(i));
    if (i % 10 == 0) db.write(a_row(2000 + i));
    db.query("SELECT run_id FROM runs", {}, [](const auto&, const auto&) {});
  }
  other.join();
  db.flush();
  CHECK(runs_in(db) == 105);
}

TEST_CASE("a row that can never be written does not wait", "[store]") {
  const TemporaryDirectory folder;
  RecordDatabase db(folder / "run.db", OpenMode::kCreate);
  db.outlast_failures();
  db.write(a_row(1));
  CHECK_THROWS_AS(db.write(a_row(1)), Error);  // the same key
}

TEST_CASE("an empty and a cut database are named as that", "[store]") {
  const TemporaryDirectory folder;
  const auto path = folder / "run.db";
  std::ofstream(path).flush();
  CHECK_THAT(error_of_reading(path, ErrorKind::kDamaged), Catch::Matchers::Contains("is empty"));
  {
    RecordDatabase db(path, OpenMode::kCreate);  // a writer makes one of it
    db.write(a_row(1));
  }
  const auto size = fs::file_size(path);
  for (const auto bytes : {size - 4096, size / 2, std::uintmax_t{4096}}) {
    fs::resize_file(path, bytes);
    CHECK_THAT(error_of_reading(path, ErrorKind::kDamaged),
               Catch::Matchers::Contains("is cut: it has " + std::to_string(bytes) + " bytes of " +
                                         std::to_string(size)));
  }
}

TEST_CASE("a version that is older than the file's tables is damage", "[store]") {
  const TemporaryDirectory folder;
  const auto path = folder / "run.db";
  RecordDatabase(path, OpenMode::kCreate).connection().execute("PRAGMA user_version = 8");
  for (const OpenMode mode : {OpenMode::kReadOnly, OpenMode::kReadWrite})
    CHECK_THROWS_AS(RecordDatabase(path, mode), Error);
  CHECK_THAT(error_of_reading(path, ErrorKind::kDamaged),
             Catch::Matchers::Contains("schema version 8 and the table trace_seals of version 9"));
}

TEST_CASE("a value that no table of ours takes is damage of the file", "[store]") {
  const TemporaryDirectory folder;
  const RecordDatabase db(folder / "run.db", OpenMode::kCreate);
  for (const char* sql : {"SELECT NULL", "SELECT 5"}) {
    try {
      db.query(sql, {}, [](const auto&, const auto& row) { (void)std::get<std::string>(row[0]); });
      FAIL("was read: " << sql);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kDamaged);
      CHECK_THAT(error.what(), Catch::Contains("run.db: holds NULL or a value of another type"));
    }
  }
}

TEST_CASE("a glance at a database that nobody writes leaves no file beside it", "[store]") {
  const TemporaryDirectory folder;
  {
    RecordDatabase written(folder / "run.db", OpenMode::kCreate);
    written.write(a_row(1));
    REQUIRE(written.journal_mode() == "wal");
    CHECK(runs_in(RecordDatabase(folder / "run.db", OpenMode::kGlance)) == 1);
  }
  CHECK(runs_in(RecordDatabase(folder / "run.db", OpenMode::kGlance)) == 1);
  CHECK_FALSE(fs::exists(folder / "run.db-wal"));
  CHECK_FALSE(fs::exists(folder / "run.db-shm"));
}

TEST_CASE("a reader waits once for whoever holds a database", "[store]") {
  const TemporaryDirectory folder;
  Database holder(folder / "run.db", OpenMode::kCreate);
  holder.execute("PRAGMA journal_mode = DELETE; CREATE TABLE held (x); BEGIN EXCLUSIVE;");
  // Opening it has waited; the first query would wait as long again.
  CHECK_THROWS_WITH(Database(folder / "run.db", OpenMode::kGlance),
                    Catch::Matchers::Contains("another process holds the database"));
}

TEST_CASE("the record of a killed run is read where nothing can be written", "[store]") {
  const TemporaryDirectory folder;
  const int code = with_small_disk(folder.path(), "size=8m", [&] {
    const auto journal = [&](const char* name) { return folder / (std::string(name) + "-wal"); };
    write_and_die(folder / "killed.db");
    if (fs::file_size(journal("killed.db")) == 0) return 30;
    fs::copy_file(folder / "killed.db", folder / "copied.db");
    fs::copy_file(journal("killed.db"), journal("copied.db"));
    {
      RecordDatabase db(folder / "closed.db", OpenMode::kCreate);
      db.write(a_row(1));
    }
    if (fs::exists(journal("closed.db"))) return 31;
    if (::mount("tmpfs", folder.path().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr) != 0)
      return 32;
    int tried = 0;
    for (const char* name : {"killed.db", "copied.db", "closed.db"}) {
      ++tried;
      const RecordDatabase db(folder / name, OpenMode::kReadOnly);
      if (runs_in(db) != 1) return tried;
    }
    return 0;
  });
  if (code == kNotPermitted) {
    WARN("a private mount is not permitted here");
    return;
  }
  CHECK(code == 0);
}

}  // namespace olmo::store::test
