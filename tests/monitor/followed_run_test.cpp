#include "monitor/followed_run.h"

#include <fstream>

#include "core/error.h"
#include "store/plain_records.h"
#include "store/run_fixture.h"
#include "store/runs/run_folder.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::monitor;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t kAll = 1'000'000;

void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

}  // namespace

TEST_CASE("a run that is not there yet is followed once it is", "[monitor]") {
  test::RecordedCurve run;
  run.steps(1, 3);
  const test::TemporaryDirectory folder;
  const fs::path place = folder / "later";
  FollowedRun followed(place.string());
  followed.look(kAll);
  CHECK_FALSE(followed.view());
  CHECK(followed.problem_kind() == ErrorKind::kUsage);
  fs::create_directory(place);
  run.sql("PRAGMA wal_checkpoint(TRUNCATE)");
  fs::copy_file(run.path(), place / "run.db");
  followed.look(kAll);
  REQUIRE(followed.view());
  CHECK(followed.view()->last->step == 3);
  CHECK(followed.problem().empty());
}

TEST_CASE("steps that are written meanwhile are seen at the next look", "[monitor]") {
  test::RecordedCurve run;
  run.steps(1, 3);
  FollowedRun followed(run.path().string());
  followed.look(kAll);
  run.steps(4, 9);
  followed.look(kAll);
  CHECK(followed.view()->last->step == 9);
  CHECK(followed.curves().curve(0).size() == 9);
}

TEST_CASE("a run that was killed has ended, and one that may go on has not", "[monitor]") {
  test::RecordedCurve run;
  run.steps(1, 3);
  FollowedRun followed(run.path().string());
  followed.look(kAll);
  CHECK_FALSE(followed.has_ended());  // its folder is not known
  const fs::path folder = run.path().parent_path();
  store::write_identity(folder, run.id(), run.path());
  {
    const store::RunLock lock(folder);
    followed.look(kAll);
    CHECK_FALSE(followed.has_ended());
  }
  followed.look(kAll);
  CHECK(followed.has_ended());
}

TEST_CASE("a new attempt that replaced steps is followed", "[monitor]") {
  test::RecordedCurve run;
  run.steps(1, 9);
  FollowedRun followed(run.path().string());
  followed.look(kAll);
  run.resume(4);
  run.steps(5, 6, 20);
  followed.look(kAll);
  CHECK(followed.view()->last->step == 6);
  const auto curve = followed.curves().curve(0);
  CHECK(curve.size() == 6);
  CHECK(curve.back().mean == 20.0 / 6);
}

TEST_CASE("a database that vanishes leaves what was seen, and is followed when it comes back",
          "[monitor]") {
  test::RecordedCurve run;
  run.steps(1, 3);
  run.sql("PRAGMA wal_checkpoint(TRUNCATE)");
  const test::TemporaryDirectory folder;
  const fs::path here = folder / "run.db", away = folder / "away.db";
  fs::copy_file(run.path(), here);
  FollowedRun followed(here.string());
  followed.look(kAll);
  REQUIRE(followed.view());
  fs::rename(here, away);
  followed.look(kAll);
  CHECK_FALSE(followed.problem().empty());
  CHECK(followed.view()->last->step == 3);
  fs::rename(away, here);
  followed.look(kAll);
  CHECK(followed.problem().empty());
}

TEST_CASE("a damaged database is one sentence", "[monitor]") {
  const test::TemporaryDirectory folder;
  write(folder / "run.db", std::string(4096, 'x'));
  FollowedRun followed((folder / "run.db").string());
  followed.look(kAll);
  CHECK(followed.problem_kind() == ErrorKind::kDamaged);
  CHECK(followed.problem().find('\n') == std::string::npos);
}

TEST_CASE("the run that was found stays the one that is followed", "[monitor]") {
  test::RecordedCurve run;
  run.steps(1, 3);
  FollowedRun followed(run.path().string());
  followed.look(kAll);
  const std::string first = followed.view()->run.run_id;
  run.db().begin_run({.name = "later",
                      .config = "{}",
                      .experiment_digest = "other",
                      .seed = 1,
                      .n_parameters = 1,
                      .max_steps = 1},
                     test::plain_attempt(), {});
  followed.look(kAll);
  CHECK(followed.view()->run.run_id == first);
}

TEST_CASE("a training that was begun anew in the place of another is followed", "[monitor]") {
  test::RecordedCurve before, now;
  before.steps(1, 9);
  now.steps(1, 2, 50);
  const test::TemporaryDirectory folder;
  const fs::path place = folder / "run.db";
  const auto put = [&](test::RecordedCurve& run) {
    run.sql("PRAGMA wal_checkpoint(TRUNCATE)");
    fs::remove(place);
    fs::copy_file(run.path(), place);
  };
  put(before);
  FollowedRun named(place.string() + ":" + before.id()), any(place.string());
  named.look(kAll);
  any.look(kAll);
  put(now);
  any.look(kAll);
  CHECK(any.problem().empty());
  CHECK(any.view()->run.run_id == now.id());
  REQUIRE(any.curves().curve(0).size() == 2);
  CHECK(any.curves().curve(0).back().mean == 25);
  named.look(kAll);
  CHECK(named.problem_kind() == ErrorKind::kUsage);
  CHECK(named.view()->run.run_id == before.id());
}

TEST_CASE("a run has ended once its record says so", "[monitor]") {
  test::RecordedCurve run;
  run.steps(1, 30);
  FollowedRun followed(run.path().string());
  followed.look(kAll);
  CHECK_FALSE(followed.has_ended());
  run.db().end_attempt("finished");
  followed.look(kAll);
  CHECK(followed.has_ended());
}
