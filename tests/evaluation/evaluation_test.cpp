#include "evaluation/evaluation.h"

#include <nlohmann/json.hpp>

#include "evaluation/recorded_evaluation.h"
#include "support/catch.h"

namespace olmo::evaluation {

TEST_CASE("the tasks of a plan come back from what is recorded of it", "[evaluation]") {
  EvaluationPlan plan;
  eval::Task task;
  task.name = "arc_easy";
  task.id = "arc_easy";
  task.convention = "olmo";
  task.primary_metric = "acc";
  task.metrics = {{"acc", "sum"}};
  plan.tasks = {task};
  const auto tasks = recorded_tasks(to_json(plan).dump());
  REQUIRE(tasks.size() == 1);
  CHECK((tasks[0].name == "arc_easy" && tasks[0].convention == "olmo"));
  CHECK((tasks[0].primary_metric == "acc" && tasks[0].metrics.size() == 1));
}

TEST_CASE("an outcome has failures where a task or a suite failed", "[evaluation]") {
  EvaluationOutcome outcome;
  outcome.tasks = {{.name = "a", .metrics = {}, .error = {}}};
  CHECK_FALSE(outcome.has_failures());
  outcome.suites = {{.name = "b", .metrics = {}, .error = Error(ErrorKind::kInput, "no data")}};
  CHECK(outcome.has_failures());
}

}  // namespace olmo::evaluation
