#include "store/runs/trackio_db.h"

#include "support/catch.h"
#include "support/temporary_directory.h"

using namespace olmo;
using namespace olmo::store;
using olmo::test::TemporaryDirectory;

namespace {

std::int64_t rows_of(const std::filesystem::path& path) {
  const Database db(path, OpenMode::kReadOnly);
  return std::get<std::int64_t>(db.value("SELECT count(*) FROM metrics"));
}

void write_run(const std::filesystem::path& path, const std::string& id, std::int64_t steps) {
  TrackioDb db(path);
  db.begin_run({.run_id = id, .name = "n", .config = "{}", .created = "2026-01-01T00:00:00"});
  for (std::int64_t step = 1; step <= steps; ++step) db.add_step(step, "t", "{}");
  db.commit();
}

}  // namespace

TEST_CASE("a run takes the place of its earlier rows in trackio's database, and of no others",
          "[store]") {
  const TemporaryDirectory folder;
  write_run(folder / "p.db", "a", 3);
  write_run(folder / "p.db", "b", 4);
  write_run(folder / "p.db", "a", 2);
  CHECK(rows_of(folder / "p.db") == 6);
}

TEST_CASE("what is not committed is not in trackio's database, and a new file is gone", "[store]") {
  const TemporaryDirectory folder;
  write_run(folder / "p.db", "a", 3);
  for (const char* name : {"p.db", "new.db"}) {
    TrackioDb db(folder / name);
    db.begin_run({.run_id = "a", .name = "n", .config = "{}", .created = "t"});
  }
  CHECK(rows_of(folder / "p.db") == 3);
  CHECK_FALSE(std::filesystem::exists(folder / "new.db"));
}

TEST_CASE("a database that is not trackio's is left as it is", "[store]") {
  const TemporaryDirectory folder;
  Database(folder / "p.db", OpenMode::kCreate).execute("CREATE TABLE metrics (a)");
  CHECK_THROWS_WITH(TrackioDb(folder / "p.db"), Catch::Contains("is no database of trackio"));
  CHECK(rows_of(folder / "p.db") == 0);
}
