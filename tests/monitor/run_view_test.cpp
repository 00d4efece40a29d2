#include "monitor/run_view.h"

#include "store/run_fixture.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::monitor;
using store::FolderWriter;

TEST_CASE("a run that ended is what its record says, whoever has its folder", "[monitor]") {
  const auto now = judge("diverged", FolderWriter{FolderWriter::State::kHolds, "process 1"});
  CHECK(now.activity == Activity::kEnded);
  CHECK(now.state == "diverged");
}

TEST_CASE("a run is running only while a process holds its folder", "[monitor]") {
  using State = FolderWriter::State;
  CHECK(judge("running", FolderWriter{State::kHolds, "p"}).activity == Activity::kRuns);
  CHECK(judge("running", FolderWriter{State::kGone, "p"}).activity == Activity::kGone);
  CHECK(judge("running", FolderWriter{State::kNone}).activity == Activity::kGone);
  CHECK(judge("running", FolderWriter{State::kUnknown, "p"}).activity == Activity::kUnknown);
  CHECK(judge("running", std::nullopt).activity == Activity::kUnknown);
}

TEST_CASE("a run whose folder no process holds is not called running", "[monitor]") {
  test::RecordedCurve run;
  run.steps(1, 3);
  store::write_identity(run.path().parent_path(), run.id(), run.path());
  const auto view = read_run_view(run.records(), run.id());
  CHECK(view.activity == Activity::kGone);
  CHECK(view.state == "not running");
  CHECK_FALSE(view.eta_seconds);
}

TEST_CASE("a run whose folder is locked runs, and has a time left at its pace", "[monitor]") {
  test::RecordedCurve run;
  run.steps(1, 20);
  const auto folder = run.path().parent_path();
  store::write_identity(folder, run.id(), run.path());
  const store::RunLock lock(folder);
  const auto view = read_run_view(run.records(), run.id());
  CHECK(view.activity == Activity::kRuns);
  REQUIRE(view.eta_seconds);
  CHECK(*view.eta_seconds == Approx(80 * 0.5));  // 80 steps are left, at half a second
}

TEST_CASE("an imported run never goes on, whatever its record says", "[monitor]") {
  store::RunRecord run;
  run.status = "running";
  const auto now = judge(run, true, {});
  CHECK(now.activity == Activity::kEnded);
  CHECK(now.state == "imported");
}

TEST_CASE("a checkpoint's path may be any text without keeping a run from being looked at",
          "[monitor]") {
  test::RecordedCurve run;
  run.db().record_checkpoint({.step = 1, .path = "", .sha256 = ""});
  run.db().record_checkpoint({.step = 2, .path = std::string(5000, 'x'), .sha256 = ""});
  CHECK(read_run_view(run.records(), run.id()).state == "running by its record");
}

TEST_CASE("the last step of a view is that of the surviving line", "[monitor]") {
  test::RecordedCurve run;
  run.steps(1, 10);
  run.resume(4);
  run.steps(5, 6, 20);
  const auto view = read_run_view(run.records(), run.id());
  REQUIRE(view.last);
  CHECK(view.last->step == 6);
  CHECK(view.last->loss == 20.0 / 6);
  CHECK(view.last->tokens == 48);
  CHECK_FALSE(view.last->mfu);
  CHECK(view.attempts == 2);
}

TEST_CASE("a run without a step has no last one", "[monitor]") {
  const test::RecordedCurve run;
  CHECK_FALSE(read_run_view(run.records(), run.id()).last);
}

TEST_CASE("a view has the newest events, oldest first, and the checkpoints that are there",
          "[monitor]") {
  test::RecordedCurve run;
  for (int i = 1; i <= 5; ++i) run.db().event(i, "kind", std::to_string(i));
  run.db().record_checkpoint({.step = 1, .path = "a", .sha256 = ""});
  run.db().record_checkpoint({.step = 2, .path = "b", .sha256 = ""});
  run.db().record_checkpoint_deleted("a");
  const auto view = read_run_view(run.records(), run.id(), 2);
  REQUIRE(view.events.size() == 2);
  CHECK(view.events[0].message == "4");
  REQUIRE(view.checkpoints.size() == 1);
  CHECK(view.checkpoints[0].path == "b");
}

TEST_CASE("the error that ended a run is the reason of its state", "[monitor]") {
  test::RecordedCurve run;
  run.steps(1, 3);
  run.db().event(4, "error", "the norm of the weights overflows");
  CHECK(read_run_view(run.records(), run.id()).reason != "the norm of the weights overflows");
  run.sql("UPDATE runs SET status = 'diverged'");
  CHECK(read_run_view(run.records(), run.id()).reason == "the norm of the weights overflows");
  run.db().event(3, "audit", "of steps 1 to 3: identical");
  CHECK(read_run_view(run.records(), run.id()).reason == "the norm of the weights overflows");
}

TEST_CASE("energy is added over devices and attempts, watts are of the last attempt", "[monitor]") {
  const auto row = [](std::int64_t attempt, const char* device, double joules) {
    return store::EnergyRecord{.source = "nvml",
                               .device = device,
                               .covers = "device",
                               .joules = joules,
                               .seconds = 10,
                               .samples = 1,
                               .note = "",
                               .attempt = attempt,
                               .host = ""};
  };
  const auto sums = energy_sums({row(1, "gpu0", 1000), row(2, "gpu0", 300), row(2, "gpu1", 200)});
  REQUIRE(sums.size() == 1);
  CHECK(sums[0].joules == 1500);
  CHECK(sums[0].watts == 50.0);
}

TEST_CASE("a job's energy is not added over the attempts, each of which counts it from its start",
          "[monitor]") {
  const auto row = [](std::int64_t attempt, double joules, double seconds) {
    return store::EnergyRecord{.source = "slurm",
                               .device = "job",
                               .covers = "job",
                               .joules = joules,
                               .seconds = seconds,
                               .samples = 1,
                               .note = "",
                               .attempt = attempt,
                               .host = ""};
  };
  const auto sums = energy_sums({row(1, 36'000, 100), row(2, 72'000, 200)});
  REQUIRE(sums.size() == 1);
  CHECK(sums[0].joules == 72'000);
  CHECK(sums[0].watts == 360.0);
}

TEST_CASE("the slowest rank is the one for which others waited most often", "[monitor]") {
  store::RankRecord first{.rank = 0}, second{.rank = 1};
  second.slowest_steps = 3;
  CHECK_FALSE(slowest_of({second}));
  REQUIRE(slowest_of({first, second}));
  CHECK(slowest_of({first, second})->rank == 1);
}
