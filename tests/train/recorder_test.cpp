#include "train/recorder.h"

#include "cli/training.h"
#include "support/catch.h"

namespace olmo::train {
namespace {

/// A run folder with its lock and a database in which an attempt has begun.
struct Begun {
  test::TemporaryDirectory folder;
  store::RunLock lock{folder / "run"};
  store::RunDb db = store::RunDb::open(folder / "run.db", store::OpenMode::kCreate);

  Begun() {
    store::AttemptRecord attempt;
    attempt.policy = attempt.build = attempt.environment = "{}";
    db.begin_run({.name = "run", .config = "{}", .experiment_digest = ""}, attempt, {});
  }
  [[nodiscard]] std::string value(const std::string& sql) const {
    return test::Record(folder / "run.db").value(sql);
  }
};

/// What a loop does in a step, and at its end.
void record_all(Recorder& recorder) {
  store::StepRecord row;
  row.step = 1;
  recorder.record_step(row);
  recorder.record_trace(1, OpTrace());
  recorder.record_metric(1, "m", 2.5);
  recorder.record_state_hashes(1, {{"model", "w", std::string(64, '0')}}, Digest());
  recorder.record_checkpoint({.step = 1, .path = "step1", .sha256 = "0"});
  recorder.record_checkpoint_deleted("step1");
  recorder.record_peak(1e9, "measured");
  recorder.record_energy({{.source = "rapl", .device = "package-0", .covers = "package"}}, {});
  recorder.event(1, "stop", "time_limit");
  recorder.end_attempt("stopped");
  recorder.flush();
}

TEST_CASE("a recorder of a database writes what it is told under the run's attempt", "[train]") {
  Begun begun;
  Recorder recorder(begun.folder / "run", begun.lock, begun.db);
  record_all(recorder);
  CHECK(begun.value("SELECT step FROM steps WHERE attempt = 1") == "1");
  CHECK(begun.value("SELECT value FROM metrics") == "2.500000");
  CHECK(begun.value("SELECT count(*) FROM state_seals") == "1");
  CHECK(begun.value("SELECT deleted_utc IS NULL FROM checkpoints") == "0");
  CHECK(begun.value("SELECT covers FROM energy") == "package");
  CHECK(begun.value("SELECT message FROM events") == "time_limit");
  CHECK(begun.value("SELECT outcome FROM attempts") == "stopped");
}

TEST_CASE("an empty recorder knows the run and writes nothing", "[train]") {
  Begun begun;
  Recorder recorder(begun.folder / "run", begun.db.run_id(), begun.db.attempt());
  record_all(recorder);
  CHECK(recorder.run_id() == begun.db.run_id());
  CHECK(recorder.attempt() == 1);
  CHECK(recorder.db() == nullptr);
  CHECK(begun.value("SELECT (SELECT count(*) FROM steps) + (SELECT count(*) FROM events) + "
                    "(SELECT count(*) FROM checkpoints)") == "0");
  CHECK(begun.value("SELECT outcome IS NULL FROM attempts") == "1");
}

TEST_CASE("only a recorder of a database asks for the run folder's lock", "[train]") {
  Begun begun;
  const Recorder writer(begun.folder / "run", begun.lock, begun.db);
  const Recorder empty(begun.folder / "run", begun.db.run_id(), begun.db.attempt());
  CHECK_NOTHROW(writer.require_held());
  std::filesystem::remove(begun.folder / "run" / store::kRunLockName);
  CHECK_THROWS(writer.require_held());
  CHECK_NOTHROW(empty.require_held());
}

}  // namespace
}  // namespace olmo::train
