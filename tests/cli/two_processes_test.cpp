// Two processes, one run folder or one database: only one writes to a folder, and no record mixes
// two trainings. None of these tests depends on which process is faster: where a process must be in
// the middle of its training, it is held there, and would train without end.
#include "cli/words.h"
#include "store/runs/run_folder.h"
#include "support/catch.h"

namespace olmo::test {
namespace {

const Words kEndless = {"max_duration=1000000000", "save_interval=1000000000", "hash_interval=0"};

/// A training without end, held after its first step.
class Endless : public StoppingChild {
 public:
  Endless(const Scene& scene, const std::string& name, const Words& before = {})
      : StoppingChild(with(before, scene.command(name, kEndless)), scene / (name + "-log"),
                      "step 1/") {
    REQUIRE(stops());
  }
};

bool one_sentence(const Ended& ended) {
  const auto first = ended.err.find("error: ");
  return first != std::string::npos && ended.err.find("error: ", first + 1) == std::string::npos;
}

}  // namespace

TEST_CASE("a second process in a run folder is refused, and the first one's record stays whole",
          "[cli]") {
  const Scene scene;
  Endless first(scene, "run");
  for (const Words& more : {Words{"--resume", "latest"}, Words{}, Words{"save_overwrite=true"}}) {
    const auto log = (scene / "second").string();
    const auto second = Child(scene.command("run", with(kEndless, more)), log).wait();
    INFO(second.err);
    CHECK(second.code == 2);
    CHECK(one_sentence(second));
    CHECK((second.says("process ") && second.says("since 2") && second.says("wait")));
  }
  first.signal(SIGTERM);
  const auto ended = first.wait();
  INFO(ended.err);
  CHECK(ended.code == 75);
  const auto record = scene.record("run");
  CHECK(record.value("SELECT count(*) || ' ' || max(outcome) FROM attempts") == "1 stopped");
  CHECK(record.steps() == "1.." + record.value("SELECT max(step) FROM steps"));
  CHECK_FALSE(fs::exists(scene / "run" / store::kRunLockName));
}

TEST_CASE("of two processes that start in an empty folder at once one trains", "[cli]") {
  const Scene scene;
  Child one(scene.command("run", {"stop_at=3"}), scene / "one");
  Child two(scene.command("run", {"stop_at=3"}), scene / "two");
  const auto first = one.wait(), second = two.wait();
  INFO(first.err << second.err);
  CHECK(first.code + second.code == 2);
  CHECK(scene.record("run").value("SELECT count(*) || ' ' || max(status) FROM runs") ==
        "1 finished");
  CHECK(scene.record("run").steps() == "1..3");
}

TEST_CASE("a process whose folder was given to another ends and does not touch the run's status",
          "[cli]") {
  const Scene scene;
  Endless first(scene, "run");
  fs::remove(scene / "run" / store::kRunLockName);  // by a person who thought that it had ended
  const auto resume = with(kEndless, {"--resume", "latest", "stop_after=2"});
  const auto second = Child(scene.command("run", resume), scene / "second").wait();
  INFO(second.err);
  REQUIRE(second.code == 75);
  const auto ended = first.wait();
  INFO(ended.err);
  CHECK(ended.code == 1);
  CHECK(one_sentence(ended));
  CHECK(ended.says("lost the lock"));
  const auto record = scene.record("run");
  CHECK(record.value("SELECT status FROM runs") == "stopped");
  CHECK(record.steps() == "1..2");
}

TEST_CASE("on a file system without locks the folder has one writer, and a killed one is replaced",
          "[cli]") {
  const Scene scene;
  const std::string libraries = fs::path(OLMO_BINARY).parent_path() / "tests";
  const Words no_locks = {"/usr/bin/env", "LD_PRELOAD=" + libraries + "/olmo_no_file_locks.so:" +
                                              libraries + "/olmo_stop_at.so"};
  Endless first(scene, "run", no_locks);
  const auto resume =
      with(no_locks, scene.command("run", with(kEndless, {"--resume", "latest", "stop_after=2"})));
  const auto refused = Child(resume, scene / "second").wait();
  INFO(refused.err);
  CHECK(refused.code == 2);
  CHECK((refused.says("process ") && refused.says(store::kRunLockName)));
  first.signal(SIGKILL);
  first.wait();
  const auto second = Child(resume, scene / "second").wait();
  INFO(second.err);
  CHECK(second.code == 75);
  const auto record = scene.record("run");
  CHECK(record.value("SELECT count(*) FROM events WHERE kind = 'lock' AND message LIKE "
                     "'%without an orderly end%'") == "1");
  CHECK(record.steps() == "1..2");
}

TEST_CASE("four trainings at once into one database are four whole runs", "[cli]") {
  const Scene scene;
  const std::string database = (scene / "all.db").string();
  std::vector<std::unique_ptr<Child>> children;
  for (const std::string name : {"a", "b", "c", "d"}) {
    children.push_back(std::make_unique<Child>(scene.command(name, {"stop_at=3", "--db", database}),
                                               scene / (name + "-log")));
  }
  for (const auto& child : children) {
    const auto ended = child->wait();
    INFO(ended.err);
    CHECK(ended.code == 0);
  }
  const Record record(database);
  CHECK(record.rows("SELECT status, count(*) FROM runs GROUP BY status") == Words{"finished|4"});
  CHECK(record.rows("SELECT count(*), count(DISTINCT chain_hash) FROM surviving_steps GROUP BY "
                    "run_id") == Words(4, "3|3"));
}

}  // namespace olmo::test
