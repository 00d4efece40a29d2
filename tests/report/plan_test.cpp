#include "report/plan.h"

#include "core/error.h"
#include "support/catch.h"
#include "support/says.h"

namespace olmo::report {
namespace {

using test::says;

double power_at(const PlanTable& table, std::int64_t count) {
  for (const auto& row : table.rows)
    if (row.count == count) return row.power;
  FAIL("no row of " << count);
  return 0;
}

}  // namespace

TEST_CASE("with a margin from the repeats four runs a side are a coin flip and six are enough",
          "[report]") {
  PlanFacts facts;
  facts.loss_deviation = 0.003;
  const Plan plan = make_plan(facts);
  REQUIRE(plan.tables.size() == 1);
  const PlanTable& runs = plan.tables[0];
  CHECK(runs.scope == Scope::kSetups);
  CHECK(power_at(runs, 2) < 0.01);
  CHECK(power_at(runs, 4) == Approx(0.54).margin(0.01));
  CHECK(power_at(runs, 6) == Approx(0.87).margin(0.01));
  CHECK(power_at(runs, 8) == Approx(0.955).margin(0.01));
  CHECK(says(runs.advice, "6 runs a side"));
}

TEST_CASE("a larger declared margin needs fewer runs, one within chance cannot be had",
          "[report]") {
  PlanFacts facts;
  facts.loss_deviation = 0.003;
  facts.loss_margin = 0.02;
  CHECK(says(make_plan(facts).tables[0].advice, "2 runs a side"));
  facts.loss_margin = 0.0003;
  CHECK(says(make_plan(facts).tables[0].advice, "No number of runs a side"));
}

TEST_CASE("branches and points are planned from their own deviations", "[report]") {
  PlanFacts facts;
  facts.branch_deviation = 0.002;
  facts.step_deviation = 0.004;
  facts.correlation_time = 3;
  const Plan plan = make_plan(facts);
  REQUIRE(plan.tables.size() == 2);
  CHECK(plan.tables[0].scope == Scope::kSetups);
  CHECK(power_at(plan.tables[0], 20) > kPower);
  CHECK(plan.tables[1].scope == Scope::kModels);
  CHECK(power_at(plan.tables[1], 20) < 0.5);
  CHECK(power_at(plan.tables[1], 400) > 0.95);
  for (const auto& table : plan.tables)
    for (std::size_t i = 1; i < table.rows.size(); ++i)
      CHECK(table.rows[i].power >= table.rows[i - 1].power - 0.01);
}

TEST_CASE("a plan never asks for more instances than a set has", "[report]") {
  PlanFacts facts;
  facts.tasks = {{"arc_challenge", 299, 0.05}};
  const Plan one = make_plan(facts);
  REQUIRE(one.tasks.size() == 1);
  CHECK(one.tasks[0].power < 0.01);
  CHECK(one.tasks[0].certifiable == Approx(0.0406).margin(0.001));
  CHECK(says(one.task_advice, "arc_challenge is certified within "));
  CHECK_FALSE(says(one.task_advice, "The arc_challenge"));
  CHECK(says(one.task_advice, "299 instances, which are all there are"));
  CHECK_FALSE(says(one.task_advice, "1719"));
}

TEST_CASE("a plan asks for more instances where a limit left some out", "[report]") {
  PlanFacts facts;
  facts.tasks = {{"piqa", 40, 0.05, true}, {"copa", 100, 0.05}};
  for (const std::size_t tasks : {2, 1}) {
    facts.tasks.resize(tasks);
    const std::string advice = make_plan(facts).task_advice;
    CHECK_FALSE(says(advice, "which are all there are"));
    CHECK(says(advice, "score more of them if the set has more"));
  }
}

TEST_CASE("where single tasks are too small the macro average is what to claim", "[report]") {
  PlanFacts facts;
  facts.macro_margin = 0.01;
  for (const std::int64_t n : {10042, 3270, 1838, 1267, 1000, 570, 500, 299})
    facts.tasks.push_back({"task" + std::to_string(n), n, 0.05});
  const Plan plan = make_plan(facts);
  REQUIRE(plan.tasks.size() == 9);
  CHECK(plan.tasks[0].name == "macro average");
  CHECK(plan.tasks[0].instances == 18'786);
  CHECK(plan.tasks[0].power == Approx(0.93).margin(0.02));
  CHECK(plan.tasks[0].certifiable < 0.01);
  CHECK(says(plan.task_advice, "The macro average is certified within "));
  CHECK(says(plan.task_advice, "of 8 tasks are too small for their margin by themselves"));
}

TEST_CASE("a plan of nothing, and impossible deviations and sets, are refused", "[report]") {
  PlanFacts facts;
  CHECK_THROWS_AS(make_plan(facts), Error);
  facts.loss_deviation = -1;
  CHECK_THROWS_AS(make_plan(facts), Error);
  facts = {};
  facts.tasks = {{"x", 0, 0.1}};
  CHECK_THROWS_AS(make_plan(facts), Error);
  facts.tasks = {{"x", 10, 1.1}};
  CHECK_THROWS_AS(make_plan(facts), Error);
  facts = {};
  facts.branch_deviation = 0.1;
  facts.loss_margin = 0;
  CHECK_THROWS_AS(make_plan(facts), Error);
}

}  // namespace olmo::report
