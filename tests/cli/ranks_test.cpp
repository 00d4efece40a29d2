// One training on several processes, as its own --nproc, srun, torchrun and mpirun start them: the
// bits of one process, and an end for all when one fails.
#include <map>

#include <unistd.h>

#include "cli/words.h"
#include "dist/store.h"
#include "support/catch.h"
#include "support/environment.h"
#include "support/happens.h"
#include "support/processes.h"

namespace olmo::test {
namespace {

const Words kShort = {"stop_at=6", "hash_interval=6"};

/// A rank as a launcher starts it: with its own variables.
Words started_with(const Words& variables, const Words& command) {
  // Name servers are asked for the name behind each address of a store over TCP.
  return with(with({"/usr/bin/env", "RES_OPTIONS=timeout:1 attempts:1"}, variables), command);
}

using Children = std::vector<std::unique_ptr<Child>>;

/// The ranks of one training in the run folder `name`. `variables_of`: a rank's.
Children start(const Scene& scene, const std::string& name, int size, const Words& more,
               const std::function<Words(int rank)>& variables_of) {
  Children ranks;
  for (int rank = 0; rank < size; ++rank)
    ranks.push_back(
        std::make_unique<Child>(started_with(variables_of(rank), scene.command(name, more)),
                                scene / (name + "-log-" + std::to_string(rank))));
  return ranks;
}

/// The variables of mpirun.
Words mpi(int rank, int size) {
  const auto r = std::to_string(rank), s = std::to_string(size);
  return {"OMPI_COMM_WORLD_RANK=" + r, "OMPI_COMM_WORLD_SIZE=" + s,
          "OMPI_COMM_WORLD_LOCAL_RANK=" + r, "OMPI_COMM_WORLD_LOCAL_SIZE=" + s};
}

/// The processes that `parent` has started as ranks, by rank.
std::map<int, pid_t> ranks_of(pid_t parent) {
  std::map<int, pid_t> ranks;
  const std::string task = "/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent);
  std::ifstream children(task + "/children");
  for (pid_t pid = 0; children >> pid;) {
    const auto variables = read_file("/proc/" + std::to_string(pid) + "/environ");
    const std::string name = std::string(1, '\0') + "OLMO_HARNESS_RANK=";
    const auto at = variables.find(name);
    if (at != std::string::npos) ranks[std::atoi(variables.c_str() + at + name.size())] = pid;
  }
  return ranks;
}

/// A training of three ranks without end, in the middle of its work.
class Endless {
 public:
  explicit Endless(const Scene& scene, const std::string& rank_timeout = "60")
      : child_(
            scene.command("run", {"max_duration=1000000000", "save_interval=3", "hash_interval=1",
                                  "--nproc", "3", "--rank-timeout", rank_timeout}),
            scene / "run-log") {
    REQUIRE(happens([&] { return fs::exists(scene / "run" / "step3") || !child_.running(); }));
    REQUIRE(child_.running());
  }
  void send(int rank, int signal) const { ::kill(ranks_of(child_.pid()).at(rank), signal); }
  Child& child() { return child_; }

 private:
  Child child_;
};

/// The run goes on with another number of ranks and has the bits of one that was not disturbed.
void check_resumed(const Scene& scene, int size) {
  const auto end = std::stoi(scene.record("run").value("SELECT max(step) FROM steps")) + 2;
  const Words until = {"max_duration=1000000000", "save_interval=1000", "hash_interval=1",
                       "stop_at=" + std::to_string(end)};
  const auto resumed =
      scene.train("run", with(until, {"--resume", "latest", "--nproc", std::to_string(size)}));
  INFO(resumed.err);
  const auto whole = scene.train("whole", until);
  INFO(whole.err);
  CHECK(whole.code == resumed.code);
  CHECK(scene.record("run").proof() == scene.record("whole").proof());
}

}  // namespace

TEST_CASE("three ranks that --nproc starts train with the bits of one process", "[cli]") {
  const Scene scene;
  REQUIRE(scene.train("one", kShort).code == 0);
  const auto ended = scene.train("three", with(kShort, {"--nproc", "3"}));
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK_FALSE(ended.says("rank 1:"));
  CHECK_FALSE(ended.says("warning"));
  CHECK(scene.record("three").proof() == scene.record("one").proof());
}

TEST_CASE("tasks of srun train with the bits of one process", "[cli]") {
  const Scene scene;
  REQUIRE(scene.train("one", kShort).code == 0);
  const auto ranks = start(scene, "srun", 2, kShort, [](int rank) {
    const auto r = std::to_string(rank), job = std::to_string(::getpid());
    return Words{"SLURM_JOB_ID=" + job,
                 "SLURM_STEP_ID=0",
                 "SLURM_PROCID=" + r,
                 "SLURM_LOCALID=" + r,
                 "SLURM_NODEID=0",
                 "SLURM_NTASKS=2",
                 "SLURM_STEP_NUM_TASKS=2",
                 "SLURM_STEP_TASKS_PER_NODE=2",
                 "SLURM_STEP_NODELIST=127.0.0.1"};
  });
  for (const auto& rank : ranks) {
    const auto ended = rank->wait();
    INFO(ended.err);
    CHECK(ended.code == 0);
  }
  CHECK(scene.record("srun").proof() == scene.record("one").proof());
}

TEST_CASE("ranks of torchrun meet at its agent's store and train with the bits of one process",
          "[cli]") {
  const Scene scene;
  REQUIRE(scene.train("one", kShort).code == 0);
  const Processes agent(1, [](int) {
    ::setenv("RES_OPTIONS", "timeout:1 attempts:1", 1);
    dist::TcpPlace place{.host = "127.0.0.1"};
    const auto store = dist::host_tcp_store(place);
    ::dprintf(STDERR_FILENO, "%d\n", static_cast<int>(place.port));
    for (;;) ::pause();
    return 0;
  });
  std::string port;
  REQUIRE(happens([&] { return (port = read_file(agent / "log-0")).ends_with('\n'); }));
  port.pop_back();
  const auto ranks = start(scene, "torchrun", 2, kShort, [&](int rank) {
    const auto r = std::to_string(rank);
    return Words{"RANK=" + r,
                 "WORLD_SIZE=2",
                 "LOCAL_RANK=" + r,
                 "LOCAL_WORLD_SIZE=2",
                 "GROUP_RANK=0",
                 "MASTER_ADDR=127.0.0.1",
                 "MASTER_PORT=" + port,
                 "TORCHELASTIC_USE_AGENT_STORE=True",
                 "TORCHELASTIC_RUN_ID=none",
                 "TORCHELASTIC_RESTART_COUNT=0"};
  });
  for (const auto& rank : ranks) {
    const auto ended = rank->wait();
    INFO(ended.err);
    CHECK(ended.code == 0);
  }
  CHECK(scene.record("torchrun").proof() == scene.record("one").proof());
}

TEST_CASE("a rank with another config is refused by all, and the key is named", "[cli]") {
  const Scene scene;
  Children ranks;
  for (int rank = 0; rank < 2; ++rank) {
    const Words more = {"--rendezvous", "file:" + (scene / "meet").string(),
                        "seed=" + std::to_string(6 + rank)};
    ranks.push_back(std::make_unique<Child>(
        started_with(mpi(rank, 2), scene.command("run", with(kShort, more))),
        scene / ("log-" + std::to_string(rank))));
  }
  const auto first = ranks[0]->wait(), second = ranks[1]->wait();
  INFO(first.err << second.err);
  CHECK(first.code == 2);
  CHECK(second.code == 2);
  CHECK(first.says("seed is 7 there and 6 on rank 0"));
  CHECK_FALSE(second.says("error"));
  CHECK_FALSE(fs::exists(scene / "run" / "run.db"));
}

TEST_CASE("a rank that is killed ends the training with 75, and two ranks go on to the same bits",
          "[cli]") {
  const Scene scene;
  Endless training(scene);
  training.send(1, SIGKILL);
  const auto ended = training.child().wait();
  INFO(ended.err);
  CHECK(ended.code == 75);
  CHECK(ended.says("error: rank 1 (process "));
  CHECK(ended.says("warning: rank 1 was ended by signal 9"));
  check_resumed(scene, 2);
}

TEST_CASE(
    "a rank 0 that is stopped ends the training with 75, and one process goes on to the same "
    "bits",
    "[cli]") {
  const Scene scene;
  Endless training(scene, "5");
  training.send(0, SIGSTOP);
  const auto ended = training.child().wait();
  INFO(ended.err);
  CHECK(ended.code == 75);
  CHECK(ended.says("error: rank 0 (process "));
  CHECK(ended.says("as by SIGSTOP"));  // the launcher says it, or another rank: who is first
  check_resumed(scene, 1);
}

TEST_CASE("a signal to --nproc stops all ranks after one save, and four ranks go on", "[cli]") {
  const Scene scene;
  Endless training(scene);
  training.child().signal(SIGTERM);
  const auto ended = training.child().wait();
  INFO(ended.err);
  CHECK(ended.code == 75);
  CHECK(ended.says("stopped at step "));
  check_resumed(scene, 4);
}

}  // namespace olmo::test
