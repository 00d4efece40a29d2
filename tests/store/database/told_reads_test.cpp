#include "store/database/told_reads.h"

#include <cerrno>

#include <sqlite3.h>
#include <unistd.h>

#include "store/database/sqlite.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace olmo::store {
namespace {

ssize_t fail_to_read(int /*fd*/, void* /*to*/, std::size_t /*bytes*/, off_t /*from*/) {
  errno = EIO;
  return -1;
}

/// While it lives, no file can be read through SQLite.
class BrokenDisk {
 public:
  BrokenDisk() {
    for (const char* name : kCalls) {
      sqlite3_vfs* system = sqlite3_vfs_find(nullptr);
      if (system->xGetSystemCall(system, name) != nullptr)  // this build of SQLite uses it
        system->xSetSystemCall(system, name, reinterpret_cast<sqlite3_syscall_ptr>(fail_to_read));
    }
  }
  ~BrokenDisk() {
    sqlite3_vfs* system = sqlite3_vfs_find(nullptr);
    for (const char* name : kCalls) system->xSetSystemCall(system, name, nullptr);
  }
  BrokenDisk(const BrokenDisk&) = delete;
  BrokenDisk& operator=(const BrokenDisk&) = delete;

 private:
  static constexpr const char* kCalls[] = {"pread", "pread64"};
};

/// A database of more pages than its schema has.
std::filesystem::path database_in(const test::TemporaryDirectory& folder) {
  Database db(folder / "a.db", OpenMode::kCreate);
  db.execute("CREATE TABLE t (x TEXT)");
  db.execute("INSERT INTO t SELECT hex(zeroblob(4000)) FROM (VALUES (1), (2), (3), (4))");
  return folder / "a.db";
}

}  // namespace

TEST_CASE("a read that fails is told with the system's reason, and is no damage", "[store]") {
  const test::TemporaryDirectory folder;
  const auto path = database_in(folder);
  const Database db(path, OpenMode::kReadOnly);
  CHECK(std::get<std::int64_t>(db.value("SELECT count(*) FROM sqlite_schema")) == 1);
  const BrokenDisk broken;
  try {
    const auto length = db.value("SELECT sum(length(x)) FROM t");
    FAIL(std::get<std::int64_t>(length) << " was read");
  } catch (const DatabaseError& error) {
    CHECK(error.kind() == ErrorKind::kFailure);
    CHECK(error.may_pass());
    CHECK_THAT(error.what(), Catch::Contains("disk I/O error (Input/output error)"));
  }
}

TEST_CASE("pages that cannot be read while they are checked are no damage", "[store]") {
  const test::TemporaryDirectory folder;
  const Database db(database_in(folder), OpenMode::kReadOnly);
  db.check_pages();
  const BrokenDisk broken;
  try {
    db.check_pages();
    FAIL("it was checked");
  } catch (const DatabaseError& error) {
    CHECK(error.kind() == ErrorKind::kFailure);
    CHECK_THAT(error.what(), Catch::Contains("disk I/O error"));
  }
}

TEST_CASE("what could not be read is read once the disk is back", "[store]") {
  const test::TemporaryDirectory folder;
  const Database db(database_in(folder), OpenMode::kReadOnly);
  {
    const BrokenDisk broken;
    CHECK_THROWS_AS(db.value("SELECT sum(length(x)) FROM t"), DatabaseError);
  }
  CHECK(std::get<std::int64_t>(db.value("SELECT sum(length(x)) FROM t")) == 4 * 8000);
}

}  // namespace olmo::store
