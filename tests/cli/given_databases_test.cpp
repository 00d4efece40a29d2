#include "cli/given_databases.h"

#include <fstream>

#include "store/runs/run_db.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using namespace olmo;
using namespace olmo::cli;

namespace {

void make_database(const std::filesystem::path& path) {
  std::filesystem::create_directories(path.parent_path());
  (void)store::RunDb::open(path, store::OpenMode::kCreate);
}

}  // namespace

TEST_CASE("a run's database is called by its folder, another one by its file", "[cli]") {
  CHECK(name_of_database("runs/a/run.db") == "runs/a");
  CHECK(name_of_database("all.db") == "all.db");
  CHECK(name_of_record("runs/a/run.db", "id") == "runs/a:id");
}

TEST_CASE("databases below a folder are read, and one that fails is kept for later", "[cli]") {
  const test::TemporaryDirectory folder;
  for (const char* name : {"a/run.db", "b/run.db", "c/run.db"}) make_database(folder / name);
  GivenDatabases databases("runs list", {folder.path().string()});
  std::vector<std::filesystem::path> read;
  databases.read([&](store::RecordDatabase& records) {
    if (records.path() == folder / "b/run.db") throw Error(ErrorKind::kDamaged, "b is damaged");
    read.push_back(records.path());
  });
  CHECK(read == std::vector{folder / "a/run.db", folder / "c/run.db"});
  REQUIRE(databases.failures().size() == 1);
  CHECK(databases.failures()[0].what() == std::string("b is damaged"));
  CHECK(databases.exit_code() == 4);
}

TEST_CASE("the failure of the only database is thrown", "[cli]") {
  const test::TemporaryDirectory folder;
  make_database(folder / "a.db");
  GivenDatabases databases("runs list", {(folder / "a.db").string()});
  CHECK_THROWS_AS(databases.read([](auto&) { throw Error(ErrorKind::kInput, "unreadable"); }),
                  Error);
  CHECK_THROWS_AS(GivenDatabases("runs list", {(folder / "gone.db").string()}), Error);
}
