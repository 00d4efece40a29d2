#include "report/training/branches.h"

#include "core/hash.h"
#include "report/run_of_losses.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::report;

namespace {

/// Forty steps from a checkpoint, the second half at `loss`.
store::RecordedRun branch(const std::string& id, std::int64_t from, const std::string& state,
                          double loss, std::uint64_t data = 0) {
  std::vector<double> losses(20, 3.0);
  losses.resize(40, loss);
  store::RecordedRun run = run_of_losses(losses);
  run.run_id = run.label = id;
  run.config = R"({"model":{"d_model":8}})";
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    run.steps.step[i] += from;
    run.steps.tokens[i] += 8 * from;
    run.steps.batch.push_back(1000 * data + static_cast<std::uint64_t>(run.steps.step[i]));
  }
  run.state_hashes[from] = {{"model", "weight", state}, {"optim", "exp_avg/weight", state}};
  run.attempts.resize(1);
  run.attempts[0].resumed_from = "step" + std::to_string(from);
  return run;
}

std::string reason_of(const Branches& branches, const std::string& id) {
  for (const auto& one : branches.unpaired)
    if (one.run_id == id) return one.reason;
  return "";
}

}  // namespace

TEST_CASE("branches from the same states are paired by digest, each a replicate", "[report]") {
  const auto a1 = branch("a1", 100, "x", 2.0), a2 = branch("a2", 200, "y", 1.0),
             a3 = branch("a3", 300, "z", 0.5);
  const auto b1 = branch("b1", 100, "x", 2.001), b2 = branch("b2", 200, "y", 1.003),
             b3 = branch("b3", 300, "z", 0.502);
  const Branches found = pair_branches({&a1, &a2, &a3}, {&b3, &b1, &b2});
  REQUIRE(found.pairs.size() == 3);
  CHECK((found.pairs[0].run_a == "a1" && found.pairs[0].run_b == "b1"));
  CHECK((found.pairs[1].from_step == 200 && found.pairs[1].steps == 40));
  CHECK(found.pairs[2].difference == Approx(0.002));
  CHECK(found.unpaired.empty());
  REQUIRE(found.test);
  CHECK(found.test->method == "paired t, 3 branches");
  CHECK(found.test->estimate == Approx(0.002));
  CHECK(found.test->interval90.inside(0.01));
}

TEST_CASE("a branch from another state, or on other batches, has no partner", "[report]") {
  const auto a = branch("a", 100, "x", 2.0), other_state = branch("b1", 100, "y", 2.1),
             other_data = branch("b2", 100, "x", 2.0, 1);
  const Branches found = pair_branches({&a}, {&other_state, &other_data});
  CHECK(found.pairs.empty());
  CHECK(found.unpaired.size() == 3);
  CHECK(reason_of(found, "b2").find("no branch from its state") != std::string::npos);
}

TEST_CASE("two branches from one state on other data are two replicates", "[report]") {
  const auto a1 = branch("a1", 100, "x", 2.0), a2 = branch("a2", 100, "x", 2.1, 1);
  const auto b1 = branch("b1", 100, "x", 2.0, 1), b2 = branch("b2", 100, "x", 2.1);
  const Branches found = pair_branches({&a1, &a2}, {&b1, &b2});
  REQUIRE(found.pairs.size() == 2);
  CHECK(found.pairs[0].run_b == "b2");
  CHECK(found.pairs[1].run_b == "b1");
}

TEST_CASE("a branch that was trained twice to the same bits counts once", "[report]") {
  const auto a = branch("a", 100, "x", 2.0), again = branch("a'", 100, "x", 2.0);
  const auto b = branch("b", 100, "x", 2.0), b2 = branch("b2", 100, "x", 2.5);
  const Branches found = pair_branches({&a, &again}, {&b, &b2});
  REQUIRE(found.pairs.size() == 1);
  CHECK(found.pairs[0].equal_bits);
  CHECK(reason_of(found, "a'") == "bit for bit the run a, which counts once");
  CHECK_FALSE(found.test);
}

TEST_CASE("a branch whose start was not hashed, or of a few steps, is named", "[report]") {
  auto unhashed = branch("a", 100, "x", 2.0), few = branch("c", 100, "x", 2.0);
  unhashed.state_hashes.clear();
  few.steps = run_of_losses({3, 2}).steps;
  const Branches found = pair_branches({&unhashed, &few}, {});
  CHECK(reason_of(found, "a").find("no hashes") != std::string::npos);
  CHECK(reason_of(found, "c").find("fewer than 20 steps") != std::string::npos);
}

TEST_CASE("a branch whose record could not be checked against its config is named", "[report]") {
  auto unread = branch("a", 100, "x", 2.0);
  unread.chain_format = kChainFormat;
  unread.max_steps = 1000;
  unread.status = "running";
  unread.config = R"({"a key of a newer program": 1})";
  CHECK(reason_of(pair_branches({&unread}, {}), "a")
            .find("its record was not checked against its config, which") == 0);
}

TEST_CASE("the branches of the compared runs' databases are found by side", "[report]") {
  auto a = run_of_losses({3, 2}), b = run_of_losses({3, 2});
  a.config = b.config = R"({"model":{"d_model":8}})";
  a.tags = {"side:lumi"};
  b.tags = {"side:mosaic"};
  auto of_a = branch("x", 100, "s", 2.0), of_b = branch("y", 100, "s", 2.0),
       lost = branch("z", 100, "s", 2.0), other = branch("w", 100, "s", 2.0);
  of_a.tags = {"side:lumi"};
  of_b.tags = {"side:mosaic"};
  other.tags = {"side:mosaic"};
  other.config = R"({"model":{"d_model":16}})";
  const Branches found = find_branches(
      a, b, {{of_a, true, true}, {of_b, true, true}, {lost, true, true}, {other, true, true}});
  REQUIRE(found.pairs.size() == 1);
  CHECK((found.pairs[0].run_a == "x" && found.pairs[0].run_b == "y"));
  CHECK(reason_of(found, "z").find("tag it") != std::string::npos);
  CHECK(reason_of(found, "w").find("another model") != std::string::npos);
}

TEST_CASE("swapping the sides of branches changes the sign alone", "[report]") {
  const auto a1 = branch("a1", 100, "x", 2.0), a2 = branch("a2", 200, "y", 1.0);
  const auto b1 = branch("b1", 100, "x", 2.25), b2 = branch("b2", 200, "y", 1.125);
  const Branches one = pair_branches({&a1, &a2}, {&b1, &b2}),
                 other = pair_branches({&b1, &b2}, {&a1, &a2});
  REQUIRE((one.test && other.test));
  CHECK(one.test->estimate == -other.test->estimate);
  CHECK(one.test->p == other.test->p);
  CHECK(one.pairs[0].difference == -other.pairs[0].difference);
}
