#include "report/training/trajectory.h"

#include <cmath>
#include <limits>

#include "report/comparability/comparability.h"
#include "report/run_of_losses.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::report;

namespace {

/// Noise about 2 that a deviation of `apart` can be added to.
std::vector<double> flat(std::size_t steps, double apart = 0) {
  std::vector<double> losses;
  for (std::size_t i = 0; i < steps; ++i)
    losses.push_back(2 + apart + 0.01 * std::sin(static_cast<double>(i * i)));
  return losses;
}

const Margin kMargin = {.value = 0.002};
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("runs of one batch size are compared at equal tokens", "[report]") {
  const Trajectory found =
      compare_trajectories(run_of_losses({4, 2, 1}), run_of_losses({4.5, 2, 0.5, 7}));
  CHECK(!found.binned);
  CHECK(found.loss.values == std::vector<double>{0.5, 0, -0.5});
  CHECK(found.loss.only_b == 1);
  CHECK(found.grad_norm.values == std::vector<double>{0, 0, 0});
  CHECK(found.first_loss_relative == 0.125);
  CHECK(found.largest == 0.5);
  CHECK(found.largest_relative == 0.5);
  CHECK(found.share == 0.5);
}

TEST_CASE("runs of other batch sizes are compared in bins that hold whole steps", "[report]") {
  const Trajectory found = compare_trajectories(run_of_losses({4, 2, 2, 2, 1, 1, 1, 1}, 24),
                                                run_of_losses({3, 2, 1, 1, 1, 4}, 32));
  CHECK(found.binned);
  CHECK(found.bin_tokens == 96);
  CHECK(found.loss.tokens == std::vector<std::int64_t>{96, 192});
  CHECK(found.loss.values == std::vector<double>{-0.5, 1});
}

TEST_CASE("runs of other batch sizes end where the first ends in tokens", "[report]") {
  const store::RecordedRun a = run_of_losses(flat(400), 8), b = run_of_losses(flat(300), 16);
  CHECK(compare_trajectories(a, b).extent == "up to 3200 tokens (B goes on to 4800 tokens)");
  CHECK(compare_trajectories(b, a).extent == "up to 3200 tokens (A goes on to 4800 tokens)");
  const store::RecordedRun c = run_of_losses(flat(300), 8);
  CHECK(compare_trajectories(a, c).extent == "up to step 300 (A goes on to step 400)");
}

TEST_CASE("losses that are not finite are left out, and runs without a common step", "[report]") {
  const Trajectory found =
      compare_trajectories(run_of_losses({kNaN, 2, 1}), run_of_losses({4, 2.5, kNaN}));
  CHECK(found.loss.values == std::vector<double>{0.5});
  CHECK(found.first_loss_relative == 0);
  CHECK(compare_trajectories(run_of_losses({1}, 8), run_of_losses({1}, 12)).loss.values.empty());
}

TEST_CASE("the last stretch has forty points where the run gives as many", "[report]") {
  const auto share = [](std::size_t steps) {
    return compare_trajectories(run_of_losses(flat(steps)), run_of_losses(flat(steps))).share;
  };
  CHECK(share(1000) == 0.1);
  CHECK(share(100) == 0.4);
  CHECK(share(20) == 0.5);
}

TEST_CASE("the last stretch is tested against the margin that is given", "[report]") {
  const store::RecordedRun a = run_of_losses(flat(1000)), b = run_of_losses(flat(1000, 0.003));
  Trajectory found = compare_trajectories(a, b);
  test_trajectory(found, {.value = 0.002, .reason = "a default"});
  CHECK(found.margin == 0.002);
  CHECK(found.margin_source == "a default");
  CHECK(found.last.points == 100);
  CHECK(found.last.mean == Approx(0.003));
  CHECK(found.last_range.low == Approx(0.003));
  CHECK(found.last.test->margin == 0.002);
  CHECK_FALSE(found.last.test->certified);
  test_trajectory(found, {.value = 0.02});
  CHECK(found.last.test->certified);

  Trajectory nothing;
  test_trajectory(nothing, {.value = 0.02});
  CHECK(nothing.last.points == 0);
}

TEST_CASE("the last stretch is of what both runs have, not of each run", "[report]") {
  std::vector<double> shorter = flat(800);
  const Trajectory found = compare_trajectories(run_of_losses(flat(1000)), run_of_losses(shorter));
  const Stretch stretch = tested_stretch(found);
  CHECK(stretch.from == 8 * 721);
  CHECK(stretch.to == 8 * 800);
  CHECK(stretch.tokens.size() == 80);
  REQUIRE(found.caveats.size() == 1);
  CHECK(found.caveats[0].find("unlike length") != std::string::npos);
}

TEST_CASE("runs that both begin late are tested over a tenth of what they have", "[report]") {
  const auto late = [] {
    store::RecordedRun run = run_of_losses(flat(1000));
    for (std::size_t i = 0; i < run.steps.size(); ++i) {
      run.steps.step[i] += 99'000;
      run.steps.tokens[i] += 8 * 99'000;
    }
    return run;
  };
  CHECK(tested_stretch(compare_trajectories(late(), late())).tokens.size() == 100);
}

TEST_CASE("below twenty points in the last half there is no test", "[report]") {
  const auto tested = [](std::size_t steps) {
    Trajectory found = compare_trajectories(run_of_losses(flat(steps)), run_of_losses(flat(steps)));
    test_trajectory(found, kMargin);
    return !found.test->too_few;
  };
  CHECK(tested(40));
  CHECK_FALSE(tested(38));
}

TEST_CASE("gaps and the decimals of a log are caveats", "[report]") {
  store::RecordedRun a = run_of_losses(flat(60)), b = run_of_losses(flat(60));
  CHECK(compare_trajectories(a, b).caveats.empty());
  for (auto* column : {&a.steps.step, &a.steps.tokens})
    column->erase(column->begin() + 30, column->begin() + 33);
  for (auto* column : {&a.steps.loss, &a.steps.grad_norm})
    column->erase(column->begin() + 30, column->begin() + 33);
  b.imported = true;
  for (double& loss : b.steps.loss) loss = std::round(loss * 100) / 100;
  const auto caveats = compare_trajectories(a, b).caveats;
  REQUIRE(caveats.size() == 2);
  CHECK(caveats[0] ==
        "A has 1 gap in its curve, the first after step 30: nothing is compared there.");
  CHECK(caveats[1].find("B were logged to 0.01 nats") != std::string::npos);
}

TEST_CASE("where curves of one batch size part is told by step", "[report]") {
  const std::vector<double> whole = flat(400);
  std::vector<double> parted = whole;
  for (std::size_t i = 250; i < 400; ++i)
    parted[i] = 2 + 0.01 * std::cos(static_cast<double>(i * i));
  const auto found = compare_trajectories(run_of_losses(whole), run_of_losses(parted)).partings;
  REQUIRE(found.size() == 1);
  CHECK(std::abs(found[0].position - 251) <= 2);
  CHECK(compare_trajectories(run_of_losses(whole), run_of_losses(whole)).partings.empty());
}

TEST_CASE("curves whose steps are numbered differently part in nothing else", "[report]") {
  std::vector<double> losses;
  for (int i = 0; i < 200; ++i) losses.push_back(2 + 0.01 * std::sin(i * i));
  const store::RecordedRun a = run_of_losses(losses);
  store::RecordedRun b = a;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    b.steps.step[i] += 5;
    b.steps.tokens[i] = 8 * b.steps.step[i];
  }
  const auto found = compare_trajectories(a, b).partings;
  REQUIRE(found.size() == 1);
  CHECK(found[0].cause == Parting::Cause::kShifted);
  CHECK(found[0].shift == 5);
  store::RecordedRun hashed_a = a, hashed_b = b;
  hashed_a.steps.batch = hashed_b.steps.batch = std::vector<std::uint64_t>(losses.size(), 1);
  CHECK(compare_trajectories(hashed_a, hashed_b).partings.empty());
}

TEST_CASE("spikes, restarts, gaps and events are marked by step", "[report]") {
  store::RecordedRun run = run_of_losses(flat(60));
  run.steps.loss[49] = 5;
  for (std::size_t i = 55; i < 60; ++i) run.steps.step[i] += 3;
  run.attempts.resize(2);
  run.attempts[0].attempt = 1;
  run.attempts[1].attempt = 2;
  run.attempts[1].start_step = 30;
  run.events = {{1, 20, "", "error", "disk full"}, {1, 25, "", "note", "not marked"}};
  const std::vector<Mark> marks = marks_of(run, 'B');
  REQUIRE(marks.size() == 4);
  CHECK((marks[0].kind == "error" && marks[0].step == 20 && marks[0].text == "disk full"));
  CHECK((marks[1].kind == "restart" && marks[1].step == 30 && marks[1].tokens == 240));
  CHECK((marks[2].kind == "spike" && marks[2].step == 50 && marks[2].side == 'B'));
  CHECK((marks[3].kind == "gap" && marks[3].step == 59));
  CHECK(marks[3].text == "3 steps are missing before");
  run.imported = true;
  CHECK(marks_of(run, 'B').size() == 3);
}

TEST_CASE("a loss that is not finite does not hide the spikes", "[report]") {
  store::RecordedRun run = run_of_losses(flat(60));
  run.steps.loss[10] = std::numeric_limits<double>::quiet_NaN();
  run.steps.loss[49] = 5;
  const std::vector<Mark> marks = marks_of(run, 'A');
  REQUIRE(marks.size() == 1);
  CHECK(marks[0].step == 50);
}

TEST_CASE("the marks of a run that tells tokens and no steps have tokens alone", "[report]") {
  store::RecordedRun run = run_of_losses(flat(60));
  run.steps.loss[49] = 5;
  run.steps.step = run.steps.tokens;
  run.steps.steps_known = false;
  run.imported = true;
  const std::vector<Mark> marks = marks_of(run, 'A');
  REQUIRE(marks.size() == 1);
  CHECK((marks[0].step == kUnknownStep && marks[0].tokens == 400));
}

TEST_CASE("decimals that hide a difference certify nothing", "[report]") {
  // 0.03 nats apart, and both are logged as 2.3.
  const auto logged = [](double apart, double unit, double spread) {
    std::vector<double> losses;
    for (const double loss : flat(400))
      losses.push_back(std::round((0.3 + apart + 2 + spread * (loss - 2)) / unit) * unit);
    store::RecordedRun run = run_of_losses(losses);
    run.imported = true;
    return run;
  };
  const auto compared = [](const store::RecordedRun& a, const store::RecordedRun& b) {
    Trajectory found = compare_trajectories(a, b);
    test_trajectory(found, kMargin);
    return found;
  };
  const Trajectory hidden = compared(logged(-0.015, 0.1, 1), logged(0.015, 0.1, 1));
  CHECK(hidden.largest == 0);
  CHECK(hidden.hidden.bias == Approx(0.1));
  CHECK(hidden.test->interval90.high == Approx(0.1));
  CHECK(hidden.last_interval95->low == Approx(-0.1));
  CHECK_FALSE(hidden.last.test->certified);
  CHECK(*hidden.test->p == 1);
  CHECK(hidden.test->hidden == Approx(0.1));
  REQUIRE(hidden.caveats.size() == 4);
  CHECK(hidden.caveats[2].find("may hide 0.05 nats of their mean") != std::string::npos);

  // Losses that move by more than their decimals are off by chance, and less the more there are.
  const Trajectory spread = compared(logged(0, 0.1, 20), logged(0, 0.1, 20));
  CHECK(spread.hidden.bias == 0);
  CHECK(spread.test->interval90.high ==
        Approx(1.68 * 0.1 * std::sqrt(2.0 / 12 / 40)).epsilon(0.02));
  const Trajectory fine = compared(logged(0, 1e-4, 1), logged(0, 1e-4, 1));
  CHECK(fine.last.test->certified);
  CHECK(compared(run_of_losses(flat(400)), run_of_losses(flat(400))).hidden.error == 0);
}

TEST_CASE("a shift within the rounding of sums is no difference of two models", "[report]") {
  const auto compared = [](double apart) {
    Trajectory found =
        compare_trajectories(run_of_losses(flat(400)), run_of_losses(flat(400, apart)));
    test_trajectory(found, kMargin);
    return *found.test;
  };
  for (const double sign : {-1.0, 1.0}) {
    const Test rounded = compared(sign * 5e-8);
    CHECK(*rounded.p == 1);
    CHECK_FALSE(rounded.equal_bits);
    CHECK(rounded.interval90.inside(1e-6));
    CHECK(*compared(sign * 3.9e-6).p == 1);
    CHECK(*compared(sign * 1e-4).p < 1e-6);
  }
}

TEST_CASE("a run that trained no step has no marks", "[report]") {
  CHECK(marks_of(store::RecordedRun{}, 'A').empty());
}

TEST_CASE("hashes of equal batches go before what the noise of losses tells of data", "[report]") {
  std::vector<double> losses, others;
  for (int i = 0; i < 200; ++i) {
    losses.push_back(2 + 0.01 * std::sin(i * i));
    others.push_back(2 + 0.01 * std::cos(3 * i * i));
  }
  store::RecordedRun a = run_of_losses(losses), b = run_of_losses(others);
  REQUIRE(compare_trajectories(a, b).partings.size() == 1);
  a.steps.batch = b.steps.batch = std::vector<std::uint64_t>(losses.size(), 1);
  CHECK(compare_trajectories(a, b).partings.empty());
}

TEST_CASE("where curves part is looked for where they are compared, at equal tokens", "[report]") {
  std::vector<double> losses;
  for (int i = 0; i < 200; ++i) losses.push_back(2 + 0.01 * std::sin(i * i));
  const store::RecordedRun a = run_of_losses(losses);
  store::RecordedRun b = a;
  for (auto& step : b.steps.step) --step;  // counts from 0
  const Trajectory found = compare_trajectories(a, b);
  CHECK(found.largest == 0);
  CHECK(found.partings.empty());
  CHECK(found.unit_of_partings == "token");
}
