#include "train/world_record.h"

#include <fstream>

#include "cli/training.h"
#include "dist/thread_ranks.h"
#include "store/runs/recorded_run.h"
#include "support/catch.h"

namespace olmo::train {
namespace {

namespace fs = std::filesystem;

RankFacts on(const std::string& host, const std::string& machine) {
  return {.host = host, .machine = machine, .pid = 1, .device = "cpu", .processor = "p"};
}

TEST_CASE("ranks are numbered on each machine, and machines of one name told apart", "[train]") {
  const auto rows = describe_ranks({on("a", "1"), on("b", "2"), on("a", "1"), on("a", "3")});
  std::vector<std::string> places;
  for (const auto& row : rows) places.push_back(row.host + " " + std::to_string(row.local_rank));
  CHECK(places == std::vector<std::string>{"a 0", "b 0", "a 1", "a (2) 0"});
  CHECK(store::devices_of(rows) == 3);
  CHECK(ranks_beside(rows, 2) == 2);
  CHECK(ranks_beside(rows, 3) == 1);
}

TEST_CASE("containers of one machine share its sensors", "[train]") {
  const auto rows = describe_ranks({on("a", "1"), on("b", "1")});
  CHECK(rows[0].host == rows[1].host);
  CHECK(rows[1].local_rank == 1);
}

/// A run of `ranks` in a database, which a recorder writes to.
struct Begun {
  test::TemporaryDirectory folder;
  store::RunLock lock{folder / "run"};
  store::RunDb db = store::RunDb::open(folder / "run.db", store::OpenMode::kCreate);

  Begun() {
    store::AttemptRecord attempt;
    attempt.policy = attempt.build = attempt.environment = "{}";
    db.begin_run({.name = "run", .config = "{}", .experiment_digest = "d"}, attempt, {});
    // A sensor of the machine, for those that read it.
    const fs::path zone = folder / "sys/class/powercap/intel-rapl:0";
    fs::create_directories(zone);
    std::ofstream(zone / "name") << "package-0\n";
    std::ofstream(zone / "energy_uj") << "1000000\n";
    std::ofstream(zone / "max_energy_range_uj") << "262143328850\n";
  }
  Recorder recorder(int rank) {
    if (rank == 0) return {folder / "run", lock, db};
    return {folder / "run", db.run_id(), db.attempt()};
  }
  [[nodiscard]] energy::EnergySources sources() const {
    return {.sysfs = folder / "sys",
            .nvml = {"/nowhere/nvml"},
            .rocm_smi = {"/nowhere/rocm"},
            .sacct = "/nowhere/sacct"};
  }
  store::RecordedRun read() {
    db.flush();
    return store::read_run(db.records(), db.run_id());
  }
};

StepReport computed_in(double seconds) {
  StepReport report;
  report.times.of(Phase::kCompute) = seconds;
  report.times.exchanged_bytes = 8;
  return report;
}

TEST_CASE("times of ranks are summed, and of phases the mean, the least and the most", "[train]") {
  Begun begun;
  dist::run_ranks(2, [&](dist::Communicator& ranks) {
    Recorder recorder = begun.recorder(ranks.rank());
    WorldRecord world(ranks, recorder, describe_ranks({on("a", "1"), on("a", "1")}),
                      begun.sources());
    world.add(1, {computed_in(1), computed_in(3)});
    world.add(2, {computed_in(2), computed_in(4)});
    world.record();
    world.add(3, {computed_in(9), computed_in(4)});
    world.finish(true);
  });
  const auto run = begun.read();
  REQUIRE(run.ranks.size() == 2);
  CHECK(run.ranks[0].compute_seconds == 12);
  CHECK(run.ranks[1].compute_seconds == 11);
  CHECK((run.ranks[0].slowest_steps == 1 && run.ranks[1].slowest_steps == 2));
  CHECK((run.ranks[1].steps == 3 && run.ranks[1].exchanged_bytes == 24));
  std::vector<store::PhaseRecord> compute;
  for (const auto& row : run.phases)
    if (row.phase == "compute") compute.push_back(row);
  REQUIRE(compute.size() == 2);
  CHECK((compute[0].first_step == 1 && compute[0].last_step == 2));
  CHECK((compute[0].least == 1.5 && compute[0].mean == 2.5 && compute[0].most == 3.5));
  CHECK(compute[0].rank == 1);
  CHECK((compute[1].first_step == 3 && compute[1].most == 9 && compute[1].rank == 0));
}

/// Sources of energy by host.
std::map<std::string, std::vector<std::string>> sources_of(const store::RecordedRun& run) {
  std::map<std::string, std::vector<std::string>> found;
  for (const auto& row : run.energy) found[row.host].push_back(row.source);
  return found;
}

TEST_CASE("each machine's sensors are read once, and Slurm is asked once", "[train]") {
  Begun begun;
  const std::vector<RankFacts> facts = {on("a", "1"), on("a", "1"), on("b", "2"), on("b", "2")};
  dist::run_ranks(4, [&](dist::Communicator& ranks) {
    Recorder recorder = begun.recorder(ranks.rank());
    WorldRecord world(ranks, recorder, describe_ranks(facts), begun.sources());
    world.finish(true);
  });
  const auto found = sources_of(begun.read());
  CHECK(found.at("a") ==
        std::vector<std::string>{"nvml", "pm_counters", "rapl", "rocm_smi", "slurm"});
  CHECK(found.at("b") == std::vector<std::string>{"nvml", "pm_counters", "rapl", "rocm_smi"});
}

TEST_CASE("an end that ranks do not reach together keeps the energy of the first machine",
          "[train]") {
  Begun begun;
  dist::run_ranks(2, [&](dist::Communicator& ranks) {
    Recorder recorder = begun.recorder(ranks.rank());
    WorldRecord world(ranks, recorder, describe_ranks({on("a", "1"), on("b", "2")}),
                      begun.sources());
    if (ranks.rank() == 0) world.finish(false);  // by itself: it must wait for nobody
  });
  const auto found = sources_of(begun.read());
  CHECK(found.contains("a"));
  CHECK_FALSE(found.contains("b"));
}

}  // namespace
}  // namespace olmo::train
