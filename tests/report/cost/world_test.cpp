#include "report/cost/world.h"

#include "report/gate.h"
#include "support/catch.h"

namespace olmo::report {
namespace {

store::RankRecord rank_of(std::int64_t attempt, std::int64_t rank, const std::string& host,
                          double compute, std::int64_t slowest) {
  store::RankRecord row{.rank = rank, .host = host};
  row.attempt = attempt;
  row.steps = 10;
  row.compute_seconds = compute;
  row.slowest_steps = slowest;
  row.gathered_bytes = 30;
  row.exchanged_bytes = 20;
  return row;
}

store::AttemptRecord attempt_of(std::int64_t number, std::int64_t world_size,
                                const std::string& strategy, const std::string& launch) {
  store::AttemptRecord attempt;
  attempt.attempt = number;
  attempt.policy = attempt.build = attempt.environment = "{}";
  attempt.world_size = world_size;
  attempt.strategy = strategy;
  attempt.launch = launch;
  return attempt;
}

/// One attempt in one process, then one on three ranks of two hosts.
store::RecordedRun recorded_run() {
  store::RecordedRun run;
  run.config = "{}";
  run.attempts = {attempt_of(1, 1, "single", "alone"), attempt_of(2, 3, "FULL_SHARD", "srun")};
  run.ranks = {rank_of(1, 0, "a", 10, 10), rank_of(2, 0, "a", 9, 1), rank_of(2, 1, "a", 9, 0),
               rank_of(2, 2, "b", 12, 9)};
  return run;
}

TEST_CASE("each kind of attempt is said once", "[report]") {
  auto run = recorded_run();
  run.attempts.push_back(attempt_of(3, 1, "single", "alone"));
  run.ranks.push_back(rank_of(3, 0, "a", 1, 1));
  CHECK(world_of(run).attempts ==
        std::vector<std::string>{"1 rank on 1 host", "3 ranks on 2 hosts, FULL_SHARD, srun"});
}

TEST_CASE("the slowest rank is the one that was it most often", "[report]") {
  const World world = world_of(recorded_run());
  REQUIRE(world.slowest);
  CHECK(to_text(*world.slowest) ==
        "rank 2 on b, in 9 of 10 steps; its own work takes 20.0 % longer than the mean");
  CHECK(world.bytes_of_step == 15);
  CHECK(world.ranks.size() == 3);
}

TEST_CASE("one rank has nobody to wait for it", "[report]") {
  auto run = recorded_run();
  run.attempts.pop_back();
  CHECK_FALSE(world_of(run).slowest);
}

TEST_CASE("phases are means over steps, in the order of a step", "[report]") {
  store::RecordedRun run;
  const auto phase = [&](std::int64_t first, std::int64_t last, const std::string& name,
                         double mean) {
    run.phases.push_back({.first_step = first, .last_step = last, .phase = name, .mean = mean});
    run.phases.back().least = mean / 2;
    run.phases.back().most = 2 * mean;
  };
  phase(1, 1, "compute", 4);
  phase(2, 4, "compute", 8);
  phase(1, 4, "data", 1);
  phase(9, 4, "wait", 1);  // damaged
  const auto phases = world_of(run).phases;
  REQUIRE(phases.size() == 2);
  CHECK((phases[0].phase == "data" && phases[0].mean == 1));
  CHECK((phases[1].phase == "compute" && phases[1].mean == 7));
  CHECK((phases[1].least == 3.5 && phases[1].most == 14));
}

TEST_CASE("a record of a time before ranks says nothing of them", "[report]") {
  store::RecordedRun run;
  run.attempts.emplace_back();
  const World world = world_of(run);
  CHECK(world.attempts.empty());
  CHECK(world.phases.empty());
  CHECK_FALSE(world.slowest);
}

TEST_CASE("another number of ranks is a benign difference, and named", "[report]") {
  Side a, b;
  a.run = recorded_run();
  b.run = recorded_run();
  b.run->attempts.pop_back();
  const Gate gate = compare_settings(a, b, Kind::kTrajectory);
  const auto found = std::ranges::find_if(
      gate.mismatches, [](const Mismatch& mismatch) { return mismatch.what == "ranks"; });
  REQUIRE(found != gate.mismatches.end());
  CHECK(found->mismatch == MismatchClass::kBenign);
  CHECK(found->a == "1 rank on 1 host; 3 ranks on 2 hosts, FULL_SHARD, srun");
  CHECK(found->b == "1 rank on 1 host");
  CHECK_FALSE(gate.has(MismatchClass::kFatal));
}

}  // namespace
}  // namespace olmo::report
