#include "cli/rank_options.h"

#include "cli/training.h"
#include "support/catch.h"

namespace olmo::test {
namespace {

const Words kShort = {"stop_at=2"};

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Words with_variables(const Words& variables, const Words& command) {
  return joined(joined({"/usr/bin/env"}, variables), command);
}

/// The variables of mpirun.
Words mpi(int rank, int size) {
  return {"OMPI_COMM_WORLD_RANK=" + std::to_string(rank),
          "OMPI_COMM_WORLD_SIZE=" + std::to_string(size)};
}

}  // namespace

TEST_CASE("a process that is one of several never trains alone", "[cli]") {
  const Scene scene;
  const auto half =
      Child(with_variables({"WORLD_SIZE=4"}, scene.command("run", kShort)), scene / "half").wait();
  CHECK(half.code == 2);
  CHECK(half.says("WORLD_SIZE is 4, but RANK is not set"));
  const auto twice = Child(with_variables(joined(mpi(0, 2), {"MASTER_ADDR=a", "MASTER_PORT=5000"}),
                                          scene.command("run", joined(kShort, {"--nproc", "2"}))),
                           scene / "twice")
                         .wait();
  CHECK(twice.code == 2);
  CHECK(twice.says("--nproc 2: mpirun has started this process as rank 0 of 2"));
  const auto missing =
      Child(with_variables(
                mpi(0, 2),
                scene.command("run", joined(kShort, {"--join-timeout", "1", "--rendezvous",
                                                     "file:" + (scene / "meet").string()}))),
            scene / "missing")
          .wait();
  CHECK(missing.code == 75);
  CHECK(missing.says("rank 1 of 2 did not come"));
  CHECK_FALSE(fs::exists(scene / "run"));
}

TEST_CASE("--nproc 1 trains alone, whatever a launcher has set", "[cli]") {
  const Scene scene;
  const auto ended =
      Child(with_variables(mpi(1, 2), scene.command("run", joined(kShort, {"--nproc", "1"}))),
            scene / "log")
          .wait();
  INFO(ended.err);
  CHECK(ended.code == 0);
}

TEST_CASE("a plan of one process says so where several are asked for", "[cli]") {
  const Scene scene;
  const auto says = [&](const Words& more) {
    return Child(scene.command("run", joined({"--dry-run"}, more)), scene / "log")
        .wait()
        .says("note: this is the plan of one process; --world-size 3 shows that of a rank of 3");
  };
  CHECK(says({"--nproc", "3"}));
  CHECK_FALSE(says({"--nproc", "1"}));
  CHECK_FALSE(says({"--nproc", "3", "--world-size", "3"}));
}

TEST_CASE("a command that shares nothing out says so in the first of several processes", "[cli]") {
  const Scene scene;
  for (const int rank : {0, 1}) {
    const auto ended =
        Child(with_variables(mpi(rank, 2), {OLMO_BINARY, "runs", "list", (scene / "x").string()}),
              scene / "log")
            .wait();
    CHECK(ended.says("note: mpirun has started this process as rank 0 of 2; runs shares") ==
          (rank == 0));
  }
}

}  // namespace olmo::test
