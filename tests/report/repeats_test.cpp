#include "report/repeats.h"

#include <cmath>

#include "report/run_of_losses.h"
#include "report/stats/trajectory_statistics.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::report;

namespace {

Side side_of(const std::vector<double>& losses) {
  Side side;
  side.run = run_of_losses(losses);
  return side;
}

store::RecordedRun repeat_of(const std::string& id, const std::string& tag,
                             const std::vector<double>& losses) {
  store::RecordedRun run = run_of_losses(losses);
  run.run_id = id;
  run.tags = {"best", tag};
  return run;
}

/// Three repeats whose last losses lie about `loss`.
std::vector<store::RecordedRun> repeats_about(double loss) {
  return {repeat_of("1", "noise", {9, loss - 0.001}), repeat_of("2", "noise", {9, loss + 0.001}),
          repeat_of("3", "noise", {9, loss + 0.002})};
}

}  // namespace

TEST_CASE("without repeats there is no noise floor, and it is said what to run", "[report]") {
  const NoiseFloor noise = noise_floor(side_of({9, 5, 3, 2}), side_of({9, 5, 3, 1}), {}, {}, 0.5);
  CHECK(noise.k_a == 1);
  CHECK(noise.values_a == std::vector<double>{2.5});
  CHECK(noise.values_b == std::vector<double>{2});
  CHECK(!noise.seed_deviation);
  CHECK(!noise.equivalence);
  CHECK(noise.envelope.empty());
  CHECK(noise.to_run.find("At least 4 runs a side are needed (now 1 and 1)") == 0);
}

TEST_CASE("repeats of one side give a deviation, but no test of the groups", "[report]") {
  const NoiseFloor noise = noise_floor(
      side_of({9, 2}), side_of({9, 3}),
      {repeat_of("x1", "noise:seed", {9, 2.2}), repeat_of("x2", "repeat", {9, 2.4})}, {}, 0.5);
  CHECK(noise.runs_a == std::vector<std::string>{"x1 (noise:seed)", "x2 (repeat)"});
  CHECK(noise.runs_b.empty());
  CHECK(noise.values_a == std::vector<double>{2, 2.2, 2.4});
  CHECK(*noise.seed_deviation == Approx(0.2));
  CHECK(!noise.p);
  CHECK(noise.to_run.find("(now 3 and 1)") != std::string::npos);
}

TEST_CASE("the deviation is pooled about each side's own mean", "[report]") {
  const NoiseFloor noise =
      noise_floor(side_of({9, 2}), side_of({9, 5}), {repeat_of("a", "noise", {9, 2.2})},
                  {repeat_of("b", "noise", {9, 5.4})}, 0.5);
  CHECK(*noise.seed_deviation == Approx(std::sqrt((0.02 + 0.08) / 2)));
  CHECK(noise.p == 1.0 / 3);
  CHECK(noise.minimum_p == 1.0 / 3);
}

TEST_CASE("four runs a side are tested as groups", "[report]") {
  const NoiseFloor same =
      noise_floor(side_of({9, 2}), side_of({9, 2}), repeats_about(2), repeats_about(2), 0.5);
  CHECK(same.to_run.empty());
  REQUIRE(same.equivalence);
  CHECK(same.equivalence->margin == loss_margin(*same.seed_deviation));
  CHECK(same.equivalence->estimate == Approx(0).margin(1e-12));
  const NoiseFloor apart =
      noise_floor(side_of({9, 2}), side_of({9, 3}), repeats_about(2), repeats_about(3), 0.5);
  CHECK(!apart.equivalence->certified);
  CHECK(*apart.p == Approx(2.0 / 70));
}

TEST_CASE("the envelope holds the largest difference of any repeat in each bin", "[report]") {
  const NoiseFloor noise =
      noise_floor(side_of({9, 5, 4}), side_of({9, 5, 4}),
                  {repeat_of("a", "noise", {9, 5.25, 4}), repeat_of("b", "noise", {9, 4.5, 4})},
                  {repeat_of("c", "noise", {9.125, 5, 4})}, 0.5);
  // Steps of 8, 16 and 24 tokens lie in bins of their own, 9, 12 and 13.
  CHECK(noise.envelope == std::vector<double>{0.125, 0.5, 0});
  REQUIRE(noise.envelope_tokens.size() == 3);
  CHECK(noise.envelope_tokens[0] == Approx(std::pow(10, 0.95)));
  CHECK(noise.envelope_tokens[1] == Approx(std::pow(10, 1.25)));
  CHECK(noise.envelope_tokens[2] == Approx(std::pow(10, 1.35)));
}
