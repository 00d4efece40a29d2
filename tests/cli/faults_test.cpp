// Faults of the machine around a training: signals, closed streams, disks that refuse, files that
// are cut. docs/faults.md lists them.

#include "cli/training.h"
#include "store/plain_records.h"
#include "support/catch.h"
#include "support/stopping_child.h"

namespace olmo::test {
namespace {

/// Stops at a moment of the run `name`, sends a signal or does whatever else, and waits for the
/// end.
template <typename Act>
Ended at_moment(const Scene& scene, const std::string& name, const Words& more,
                const std::string& moment, const Act& act) {
  StoppingChild child(scene.command(name, more), scene / (name + "-log"), moment);
  REQUIRE(child.stops());
  act(child);
  return child.wait();
}

/// Descriptors of a pipe whose reader is gone.
void lose_reader(int fd) {
  int pipe[2];
  if (::pipe(pipe) != 0) ::_exit(126);
  ::dup2(pipe[1], fd);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

}  // namespace

TEST_CASE("a lost terminal stops a training like SIGTERM, unless nohup ignores it", "[cli]") {
  const Scene scene;
  const auto hang_up = [](const Child& child) { child.signal(SIGHUP); };
  const auto ended = at_moment(scene, "run", {"save_interval=5"}, "step5-tmp", hang_up);
  INFO(ended.err);
  CHECK(ended.code == 75);
  const auto record = scene.record("run");
  CHECK(record.value("SELECT message FROM events WHERE kind = 'signal'") == "SIGHUP");
  CHECK(record.value("SELECT status FROM runs") == "stopped");
  std::signal(SIGHUP, SIG_IGN);  // which a program that is started inherits, as from nohup
  const auto ignoring = at_moment(scene, "ignored", {"save_interval=5"}, "step5-tmp", hang_up);
  std::signal(SIGHUP, SIG_DFL);
  CHECK(ignoring.code == 0);
}

TEST_CASE("a signal before the first step ends a training at once, and nothing is lost", "[cli]") {
  const Scene scene;
  const auto stop = [](const Child& child) { child.signal(SIGTERM); };
  const auto ended = at_moment(scene, "run", {}, "run.db", stop);
  INFO(ended.err);
  CHECK(ended.code == 75);
  CHECK(scene.train("run", {"--resume", "latest"}).code == 0);
  CHECK(scene.record("run").steps() == "1..20");
}

TEST_CASE("a training that ends before its first step has the checkpoint that it began to save",
          "[cli]") {
  const Scene scene;
  const auto stop = [](const Child& child) { child.signal(SIGTERM); };
  const auto ended = at_moment(scene, "run", {}, "MFU: ", stop);
  INFO(ended.err);
  CHECK(ended.code == 75);
  CHECK(scene.record("run").value("SELECT path FROM checkpoints") ==
        (scene / "run" / "step0").string());
  CHECK(scene.train("run", {"--resume", "latest"}).code == 0);
  CHECK(scene.record("run").steps() == "1..20");
}

TEST_CASE("a training outlives the readers of its output", "[cli]") {
  const Scene scene;
  Child child(scene.command("run", {}), scene / "run-log", std::nullopt, [] {
    lose_reader(1);
    lose_reader(2);
  });
  const auto ended = child.wait();
  CHECK(ended.signal == 0);
  CHECK(ended.code == 0);
  CHECK(scene.record("run").steps() == "1..20");
}

TEST_CASE("a listing whose reader has gone ends quietly", "[cli]") {
  const Scene scene;
  REQUIRE(scene.train("run", {"stop_after=1"}).code == 75);
  Child child({OLMO_BINARY, "runs", "export", (scene / "run").string()}, scene / "export",
              std::nullopt, [] { lose_reader(1); });
  const auto ended = child.wait();
  CHECK(ended.signal == SIGPIPE);
  CHECK(ended.err.empty());
}

TEST_CASE("with closed streams no progress gets into a file", "[cli]") {
  const Scene scene;
  Child child(scene.command("run", {}), scene / "run-log", std::nullopt, [] {
    for (int fd = 0; fd < 3; ++fd) ::close(fd);
  });
  CHECK(child.wait().code == 0);
  REQUIRE(scene.train("open").code == 0);
  CHECK(scene.record("run").proof() == scene.record("open").proof());
  CHECK(scene.record("run").value("PRAGMA integrity_check") == "ok");
  CHECK(read_file(scene / "run" / "step20" / "checkpoint.h5").size() > 0);
}

TEST_CASE("a token file that is cut while a training reads it is a sentence, and its state is kept",
          "[cli]") {
  const Scene scene;
  const auto cut = [&](const Child&) { fs::resize_file(scene / "tokens.npy", 0); };
  const auto ended = at_moment(scene, "run", {"save_interval=5"}, "step5-tmp", cut);
  INFO(ended.err);
  CHECK(ended.code == 3);
  CHECK(ended.says("tokens.npy: a part of bytes"));
  CHECK(ended.says("can no longer be read"));
  CHECK(scene.record("run").value("SELECT status FROM runs") == "failed");
  write_tokens(scene / "tokens.npy", token_ids<std::uint16_t>());
  CHECK(scene.train("run", {"save_interval=5", "--resume", "latest"}).code == 0);
  CHECK(scene.record("run").steps() == "1..20");
}

TEST_CASE("a save that fails is a warning, and the next one is tried", "[cli]") {
  const Scene scene;
  fs::create_directories(scene / "run" / "step5-tmp");
  std::ofstream(scene / "run" / "step5-tmp" / "notes.txt") << "in the way";
  const auto ended = scene.train("run", {"save_interval=5"});
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK(ended.says("warning: a checkpoint could not be saved (failure 1 of 3 allowed in a row)"));
  const auto record = scene.record("run");
  CHECK(record.value("SELECT count(*) FROM events WHERE kind = 'warning'") == "1");
  CHECK(record.value("SELECT group_concat(step) FROM checkpoints") == "0,10,15,20");
}

TEST_CASE("saves that fail end a training when more fail in a row than it allows", "[cli]") {
  const Scene scene;
  const rlim_t too_small = 1 << 20;  // the database fits, a checkpoint does not
  const auto ended = scene.train("run", {"save_interval=2", "save_failures_allowed=2"}, too_small);
  INFO(ended.err);
  CHECK(ended.code == 1);
  CHECK(ended.says("`save_failures_allowed` is 2"));
  const auto record = scene.record("run");
  CHECK(record.value("SELECT count(*) FROM events WHERE kind = 'warning'") == "2");
  CHECK(record.value("SELECT status FROM runs") == "failed");
  // The third failure is that of step 4; saving goes on beside training, up to the next save.
  const auto last = std::stoi(record.value("SELECT max(step) FROM steps"));
  CHECK((last >= 4 && last <= 6));
}

TEST_CASE("the last save of a training must succeed", "[cli]") {
  const Scene scene;
  const auto ended =
      scene.train("run", {"save_interval=10", "save_failures_allowed=9"}, rlim_t{1} << 20);
  INFO(ended.err);
  CHECK(ended.code == 1);
  CHECK(ended.says("step 20, the last, could not be saved"));
  CHECK(ended.says("no checkpoint had been saved, so the training has to begin anew"));
  CHECK(scene.record("run").steps() == "1..20");
}

TEST_CASE("weights that an update makes infinite are a divergence, and no checkpoint has them",
          "[cli]") {
  const Scene scene;
  const auto ended = scene.train(
      "run", {"optimizer.learning_rate=1e38", "scheduler.t_warmup=0", "save_interval=1"});
  INFO(ended.err);
  CHECK(ended.code == 6);
  CHECK(ended.says("after the update with learning rate"));
  CHECK(ended.says("the last checkpoint is " + (scene / "run" / "step0").string()));
  const auto record = scene.record("run");
  CHECK(record.value("SELECT status FROM runs") == "diverged");
  CHECK(record.value("SELECT count(*) FROM events WHERE kind = 'error'") == "1");
  CHECK(fs::read_symlink(scene / "run" / "latest") == "step0");
}

TEST_CASE("a database copied without its journal, from a run that did not end, is named", "[cli]") {
  const TemporaryDirectory folder;
  auto db = store::RunDb::open(folder / "run.db", store::OpenMode::kCreate);
  db.begin_run(test::plain_run("run"), test::plain_attempt(), {});
  fs::copy_file(folder / "run.db", folder / "copy.db");
  const auto whole = harness(folder / "whole-log", {"runs", "list", (folder / "run.db").string()});
  CHECK(whole.code == 0);
  CHECK_FALSE(whole.says("-wal"));
  db.records().connection().execute("PRAGMA wal_checkpoint(TRUNCATE)");
  fs::copy_file(folder / "run.db", folder / "copy.db", fs::copy_options::overwrite_existing);
  const auto copy = harness(folder / "copy-log", {"runs", "list", (folder / "copy.db").string()});
  CHECK(copy.code == 0);
  CHECK(copy.says("copy.db-wal beside it"));
}

TEST_CASE("folders that a killed save left are removed when the run goes on", "[cli]") {
  const Scene scene;
  REQUIRE(scene.train("run", {"stop_after=2"}).code == 75);
  fs::create_directories(scene / "run" / "step7-tmp");
  fs::create_directories(scene / "run" / "step8-trash");
  fs::create_directories(scene / "run" / "step9-tmp");
  std::ofstream(scene / "run" / "step9-tmp" / "notes.txt") << "mine";
  const auto stop = [](const Child& child) { child.signal(SIGKILL); };
  StoppingChild child(scene.command("run", {"--resume", "latest"}), scene / "again", "run.db-wal");
  REQUIRE(child.stops());
  stop(child);
  child.Child::wait();
  CHECK_FALSE(fs::exists(scene / "run" / "step7-tmp"));
  CHECK_FALSE(fs::exists(scene / "run" / "step8-trash"));
  CHECK(fs::exists(scene / "run" / "step9-tmp" / "notes.txt"));
}

}  // namespace olmo::test
