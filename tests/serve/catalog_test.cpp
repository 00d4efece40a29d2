#include "serve/catalog.h"

#include <fstream>
#include <set>

#include "serve/routes.h"
#include "store/run_fixture.h"
#include "support/catch.h"
#include "support/happens.h"

namespace fs = std::filesystem;
namespace serve = olmo::serve;
using olmo::test::happens;
using olmo::test::RecordedCurve;
using olmo::test::TemporaryDirectory;

namespace {

constexpr auto kPatience = std::chrono::seconds(100);

std::shared_ptr<const serve::Listing> listing(serve::Catalog& catalog) {
  return catalog.listing(kPatience);
}

/// A database of one run, begun on that day, closed, at a path of its own.
void record_at(const fs::path& path, const std::string& name,
               const std::string& day = "2026-01-01") {
  fs::create_directories(path.parent_path());
  RecordedCurve run;
  run.steps(1, 3);
  run.sql("UPDATE runs SET name = '" + name + "', created_utc = '" + day + "T00:00:00.000Z'");
  run.sql("VACUUM INTO '" + path.string() + "'");
}

}  // namespace

TEST_CASE("runs of all folders below are listed, the latest first", "[serve]") {
  const TemporaryDirectory folder;
  record_at(folder / "a/run.db", "first", "2026-01-01");
  record_at(folder / "b/c/run.db", "second", "2026-01-02");
  serve::Catalog catalog({folder.path()});
  const auto found = listing(catalog);
  REQUIRE(found->runs.size() == 2);
  CHECK(found->databases == 2);
  CHECK(found->read == 2);
  const auto& second = found->runs[0];
  CHECK(second.name() == "second");
  CHECK(second.place == "b/c/run.db");
  CHECK(second.summary.step == 3);
}

TEST_CASE("a copy of a run has a key of its own, and keys are the same the next time", "[serve]") {
  const TemporaryDirectory folder;
  record_at(folder / "a.db", "run");
  fs::copy_file(folder / "a.db", folder / "b.db");
  std::set<std::string> keys, again;
  {
    serve::Catalog catalog({folder.path()});
    for (const auto& run : listing(catalog)->runs) keys.insert(run.key);
  }
  serve::Catalog catalog({folder.path()});
  for (const auto& run : listing(catalog)->runs) again.insert(run.key);
  CHECK(keys.size() == 2);
  CHECK(keys == again);
}

TEST_CASE("a key is plain text whatever the run's id is", "[serve]") {
  RecordedCurve run;
  run.sql("PRAGMA foreign_keys = OFF");
  run.sql("UPDATE runs SET run_id = '../../<b>\"'");
  serve::Catalog catalog({run.path().parent_path()});
  const auto found = listing(catalog);
  REQUIRE(found->runs.size() == 1);
  CHECK(found->runs[0].key.find_first_not_of("0123456789abcdef~") == std::string::npos);
  CHECK(catalog.run(found->runs[0].key).summary.run.run_id == "../../<b>\"");
}

TEST_CASE("a damaged database is a sentence beside the others", "[serve]") {
  const TemporaryDirectory folder;
  record_at(folder / "good/run.db", "good");
  fs::create_directories(folder / "bad");
  std::ofstream(folder / "bad/run.db") << "this is no database, and never was one";
  fs::create_directories(folder / "empty");
  std::ofstream(folder / "empty/run.db") << "";
  serve::Catalog catalog({folder.path()});
  const auto found = listing(catalog);
  CHECK(found->runs.size() == 1);
  REQUIRE(found->bad.size() == 2);
  CHECK(found->bad[0].place == "bad/run.db");
  CHECK_FALSE(found->bad[0].sentence.empty());
}

TEST_CASE("a run whose database was damaged meanwhile is not said to be gone", "[serve]") {
  const TemporaryDirectory folder;
  record_at(folder / "a/run.db", "run");
  serve::Catalog catalog({folder.path()});
  const std::string key = listing(catalog)->runs.at(0).key;
  std::ofstream(folder / "a/run.db") << "this is no database any more";
  CHECK(happens([&] { return listing(catalog)->bad.size() == 1; }));
  try {
    static_cast<void>(catalog.run(key));
    FAIL("it cannot be read");
  } catch (const serve::NotFound& absent) {
    CHECK(std::string(absent.what()).find("a/run.db, cannot be read now: ") != std::string::npos);
  }
}

TEST_CASE("a new run appears, a changed one changes, a removed one goes, by themselves",
          "[serve]") {
  const TemporaryDirectory folder;
  RecordedCurve run;
  serve::Catalog catalog({folder.path(), run.path()});
  CHECK(listing(catalog)->runs.size() == 1);
  run.steps(1, 7);
  CHECK(happens([&] { return listing(catalog)->runs.at(0).summary.step == 7; }));
  record_at(folder / "new/run.db", "new");
  CHECK(happens([&] { return listing(catalog)->runs.size() == 2; }));
  const auto found = listing(catalog);
  const auto key = found->runs[found->runs[0].name() == "new" ? 0 : 1].key;
  CHECK(catalog.run(key).name() == "new");
  fs::remove_all(folder / "new");
  CHECK(happens([&] { return listing(catalog)->runs.size() == 1; }));
  CHECK_THROWS_AS(catalog.run(key), serve::NotFound);
}

TEST_CASE("a run is listed as running while a process holds its folder, and no longer", "[serve]") {
  RecordedCurve run;
  run.steps(1, 3);
  const auto folder = run.path().parent_path();
  serve::Catalog catalog({run.path()});
  const auto state = [&] { return listing(catalog)->runs.at(0).now.state; };
  CHECK(state() == "running by its record");  // which folder is its own is not told
  olmo::store::write_identity(folder, run.id(), run.path());
  {
    const olmo::store::RunLock lock(folder);
    CHECK(happens([&] { return state() == "running"; }));
  }
  CHECK(happens([&] { return state() == "not running"; }));  // its database did not change
  run.db().end_attempt("finished");
  run.db().flush();
  CHECK(happens([&] { return state() == "finished"; }));
}

TEST_CASE("looking at a folder of runs leaves it as it was", "[serve]") {
  const TemporaryDirectory folder;
  record_at(folder / "a/run.db", "run");
  {
    serve::Catalog catalog({folder.path()});
    const auto found = listing(catalog);
    REQUIRE(found->runs.size() == 1);
    CHECK(found->runs[0].open().run(found->runs[0].summary.run.run_id).name == "run");
  }
  CHECK(std::distance(fs::directory_iterator(folder / "a"), fs::directory_iterator()) == 1);
}
