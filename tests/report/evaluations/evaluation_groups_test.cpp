#include "report/evaluations/evaluation_groups.h"

#include "support/catch.h"

using namespace olmo::report;

namespace {

/// Two tasks of 200 instances; `right(task, instance)`.
template <typename Right>
EvaluationData evaluation(const Right& right) {
  EvaluationData data;
  for (int t = 0; t < 2; ++t) {
    EvaluatedTask task{.task = "task" + std::to_string(t), .primary_metric = "acc"};
    for (std::int64_t i = 0; i < 200; ++i) {
      task.instances.push_back({.doc_id = i, .first_option = 2 * i, .options = 2});
      task.instances.back().chosen = right(t, i) ? 0 : 1;
      task.logprobs.insert(task.logprobs.end(), {-1, -2});
    }
    data.tasks.push_back(std::move(task));
  }
  return data;
}
/// Wrong in every tenth instance, shifted from run to run, and in `lost` more of the first task.
EvaluationData run(std::int64_t shift, std::int64_t lost = 0) {
  return evaluation([=](int task, std::int64_t i) {
    return (i + shift) % 10 != 0 && !(task == 0 && i < lost && i % 2 == 0);
  });
}

}  // namespace

TEST_CASE("evaluated repeats are compared over runs and instances", "[report]") {
  const EvaluatedRuns runs{{run(0), run(1), run(2)}, {run(3), run(4)}};
  const auto tests = tests_of_repeats(runs);
  REQUIRE(tests.size() == 3);
  CHECK(tests[2].endpoint == Endpoint::kMacro);
  CHECK(tests[2].name == "macro average of 2 tasks");
  CHECK(tests[2].estimate == Approx(0).margin(1e-9));
  CHECK(tests[2].k_a == 3);
  CHECK(tests[2].k_b == 2);
  CHECK(tests[2].n == 400);
  CHECK(macro_deviation(runs)->pooled == Approx(0).margin(1e-9));
}

TEST_CASE("a task that all runs of a side lost is found, and counts half in the macro average",
          "[report]") {
  const EvaluatedRuns runs{{run(0), run(1), run(2), run(3)},
                           {run(4, 40), run(5, 44), run(6, 40), run(7, 44)}};
  const auto tests = tests_of_repeats(runs);
  REQUIRE(tests.size() == 3);
  CHECK(tests[0].estimate < -8);
  CHECK(tests[0].interval95.high < 0);
  CHECK(tests[2].estimate == Approx(tests[0].estimate / 2));
  CHECK(macro_deviation(runs)->pooled > 0);
}

TEST_CASE("one run a side, or another set of instances, tells nothing about the setups",
          "[report]") {
  CHECK(tests_of_repeats({{run(0)}, {run(1), run(2)}}).empty());
  auto other = run(2);
  other.tasks[0].definition_digest = "other";
  auto first = run(0);
  first.tasks[0].definition_digest = "this";
  CHECK(tests_of_repeats({{first, run(1)}, {run(1), other}}).empty());
  CHECK_FALSE(macro_deviation({{run(0)}, {run(1)}}));
}

TEST_CASE("another evaluation of a run is taken only if it is sound and asked the same",
          "[report]") {
  CHECK(holds_the_same(run(0), run(1)));
  auto damaged = run(1), other = run(1), fewer = run(1);
  damaged.damage = {"altered"};
  other.tasks[1].data_digest = "other";
  fewer.tasks[0].instances.pop_back();
  auto reference = run(0);
  reference.tasks[1].data_digest = "this";
  for (const auto* data : {&damaged, &other, &fewer}) CHECK_FALSE(holds_the_same(reference, *data));
}

TEST_CASE("what else an evaluation holds does not keep it from being taken", "[report]") {
  auto more = run(1);
  more.tasks.push_back(more.tasks[0]);
  more.tasks.back().task = "more";
  CHECK(holds_the_same(run(0), more));
  CHECK_FALSE(holds_the_same(more, run(0)));
}

TEST_CASE("several checkpoints of a pair are one test, with instances as clusters", "[report]") {
  const EvaluatedRuns steps{{run(0), run(0)}, {run(0, 40), run(0, 40)}};
  const auto test = test_of_checkpoints(steps);
  REQUIRE(test);
  CHECK(test->difference_only);
  CHECK(test->estimate == Approx(-4));  // 16 of 200 instances of one of two tasks
  CHECK(test->n == 400);
  // The second checkpoint answers as the first and makes nothing surer.
  CHECK(test->interval95.high - test->interval95.low > 3);
  CHECK_FALSE(test_of_checkpoints({{run(0)}, {run(1)}}));
}
