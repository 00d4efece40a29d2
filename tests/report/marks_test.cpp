#include "report/marks.h"

#include <cmath>
#include <limits>

#include "report/run_of_losses.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::report;

namespace {

/// Noise about 2.
std::vector<double> flat(std::size_t steps) {
  std::vector<double> losses;
  for (std::size_t i = 0; i < steps; ++i)
    losses.push_back(2 + 0.01 * std::sin(static_cast<double>(i * i)));
  return losses;
}

}  // namespace

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
