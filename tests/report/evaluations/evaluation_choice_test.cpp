#include "report/evaluations/evaluation_choice.h"

#include "report/evaluated_side.h"
#include "support/catch.h"

namespace olmo::report {
namespace {

using test::EvaluatedSide;

ChosenEvaluations choose(const EvaluatedSide& a, const EvaluatedSide& b) {
  return choose_evaluations(a.side(), a.records(), b.side(), b.records(), {});
}

std::vector<std::string> tasks_of(const EvaluationData& data) {
  std::vector<std::string> names;
  for (const auto& task : data.tasks) names.push_back(task.task);
  return names;
}

}  // namespace

TEST_CASE("tasks of one step are compared in whatever evaluations they are", "[report]") {
  EvaluatedSide a, b;
  a.add(7, "arc");
  a.add(7, "boolq");
  b.add(7, "boolq");
  b.add(7, "arc");
  for (const auto& chosen : {choose(a, b), choose(b, a)}) {
    REQUIRE(chosen.a);
    CHECK(tasks_of(*chosen.a) == std::vector<std::string>{"arc", "boolq"});
    CHECK(tasks_of(*chosen.b) == std::vector<std::string>{"arc", "boolq"});
    CHECK(chosen.a->damage.empty());
    CHECK(chosen.caveats.empty());
  }
}

TEST_CASE("what is not compared of a step is named", "[report]") {
  EvaluatedSide a, b;
  for (EvaluatedSide* side : {&a, &b}) {
    side->add(7, "boolq", -1, R"({"precision":"amp_bf16"})");
    side->add(7, "arc");
  }
  a.add(7, "piqa");
  if (GENERATE(false, true)) {  // one millisecond saw them all
    a.make_at_once();
    b.make_at_once();
  }
  const auto chosen = choose(a, b);
  REQUIRE(chosen.a);
  CHECK(tasks_of(*chosen.a) == std::vector<std::string>{"arc"});
  REQUIRE(chosen.caveats.size() == 2);
  CHECK(chosen.caveats[0].find("Not compared: boolq, which both sides evaluated") == 0);
  CHECK(chosen.caveats[1].find("Not compared: piqa, which only A evaluated") == 0);
}

TEST_CASE("what a training's evaluators scored of each task is seen, as the limit of eval is",
          "[report]") {
  const std::string policy = R"({"precision":"fp32"})";
  const auto side_of = [&](const std::string& limit) {
    auto side = std::make_unique<EvaluatedSide>();
    side->add(7, "boolq", -1, policy, R"({"limit":10,"tasks":[{"name":"boolq"}]})");
    side->add(7, "arc", -1, policy,
              R"({"limit":null,"tasks":[{"name":"arc","limit":)" + limit + "}]}");
    return side;
  };
  const auto same = side_of("10"), other = side_of("20");
  const auto both = choose(*same, *same);
  REQUIRE(both.a);
  CHECK(tasks_of(*both.a) == std::vector<std::string>{"arc", "boolq"});
  const auto one = choose(*other, *other);
  REQUIRE(one.a);
  CHECK(tasks_of(*one.a) == std::vector<std::string>{"arc"});
  CHECK(one.a->limit == "20 instances of arc");
  REQUIRE(one.caveats.size() == 1);
  CHECK(one.caveats[0].find("Not compared: boolq, which both sides evaluated with another limit") ==
        0);
}

TEST_CASE("evaluations of later steps than the compared one are named", "[report]") {
  EvaluatedSide a, b;
  for (EvaluatedSide* side : {&a, &b}) side->add(10, "arc");
  CHECK(choose(a, b).caveats.empty());
  for (EvaluatedSide* side : {&a, &b}) side->add(20, "arc");
  b.end_last_as("failed");
  const auto chosen = choose(a, b);
  REQUIRE(chosen.a);
  CHECK(chosen.a->step == 10);
  CHECK(chosen.caveats ==
        std::vector<std::string>{
            "Not compared: the evaluation of A at step 20, as B has none at that step that is "
            "finished.",
            "Not compared: the evaluation of B at step 20, which is recorded as failed."});
  EvaluatedSide failed, other;
  for (EvaluatedSide* side : {&failed, &other}) {
    side->add(20, "arc");
    side->end_last_as("interrupted");
  }
  CHECK(choose(failed, other).caveats.size() == 2);
}

TEST_CASE("runs of other batch sizes are compared by scores of equal tokens", "[report]") {
  EvaluatedSide a, b;
  a.trained_with(200);
  b.trained_with(100);
  for (EvaluatedSide* side : {&a, &b})
    for (const std::int64_t step : {10, 20}) side->add(step, "arc");
  const auto chosen = choose(a, b), swapped = choose(b, a);
  REQUIRE(chosen.a);
  CHECK((chosen.a->step == 10 && chosen.b->step == 20));
  CHECK((swapped.a->step == 20 && swapped.b->step == 10));
  CHECK(chosen.caveats ==
        std::vector<std::string>{
            "Not compared: the evaluation of A at step 20 (4,000 tokens), as B has none at that "
            "number of tokens that is finished.",
            "The scores are those of equal tokens: of A at step 10 (2,000 tokens), of B at step 20 "
            "(2,000 tokens)."});
}

TEST_CASE("runs of other batch sizes with scores of equal steps alone have none to compare",
          "[report]") {
  EvaluatedSide a, b;
  a.trained_with(200);
  b.trained_with(100);
  for (EvaluatedSide* side : {&a, &b}) side->add(30, "arc");
  const auto chosen = choose(a, b);
  CHECK_FALSE(chosen.a);
  CHECK(chosen.problem.find("the last evaluation of A is of step 30 (6,000 tokens), that of B of "
                            "step 30 (3,000 tokens)") != std::string::npos);
}

}  // namespace olmo::report
