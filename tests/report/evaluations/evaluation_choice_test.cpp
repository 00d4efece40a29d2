#include "report/evaluations/evaluation_choice.h"

#include "report/evaluated_side.h"
#include "support/catch.h"

namespace olmo::report {
namespace {

using test::EvaluatedSide;

constexpr const char* kPolicy = R"({"precision":"fp32"})";

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

TEST_CASE("tasks of one step are compared whatever limit each has", "[report]") {
  EvaluatedSide side;
  side.add(7, "boolq", -1, kPolicy, R"({"limit":10})");
  side.add(7, "arc", -1, kPolicy, R"({"tasks":[{"name":"arc","limit":20}]})");
  const auto chosen = choose(side, side);
  REQUIRE(chosen.a);
  CHECK(tasks_of(*chosen.a) == std::vector<std::string>{"arc", "boolq"});
  CHECK(limits_text(*chosen.a) == "20 instances of arc, 10 instances of boolq");
  CHECK(chosen.caveats.empty());
}

TEST_CASE("evaluations that asked as many instances are set against each other", "[report]") {
  EvaluatedSide a, b;
  const std::vector<const char*> limits = {R"({"limit":10})", R"({"limit":20})"};
  for (const char* limit : limits) a.add(7, "arc", -1, kPolicy, limit);
  b.add(7, "arc", -1, kPolicy, limits[0]);
  SECTION("where all have the same tasks") {
    const auto chosen = choose(a, b);
    REQUIRE(chosen.a);
    CHECK(chosen.a->tasks[0].asked.limit == 10);
  }
  SECTION("where they are added to others") {
    for (EvaluatedSide* side : {&a, &b}) side->add(7, "boolq");
    const auto chosen = choose(b, a);
    REQUIRE(chosen.a);
    CHECK(tasks_of(*chosen.a) == std::vector<std::string>{"arc", "boolq"});
    CHECK(chosen.a->tasks[0].asked.limit == 10);
    CHECK(chosen.b->tasks[0].asked.limit == 10);
  }
}

TEST_CASE("of evaluations that both sides have the one of most instances is compared", "[report]") {
  EvaluatedSide a, b;
  for (EvaluatedSide* side : {&a, &b}) {
    side->add(7, "boolq", -1, kPolicy, R"({"limit":10})");
    side->add(7, "arc", -1, kPolicy, R"({"limit":20})");
    side->add(7, "arc", -1, kPolicy);
    side->add(7, "arc", -1, kPolicy, R"({"limit":30})");
  }
  const auto chosen = choose(a, b);
  REQUIRE(chosen.a);
  REQUIRE(tasks_of(*chosen.a) == std::vector<std::string>{"arc", "boolq"});
  for (const auto* side : {&*chosen.a, &*chosen.b}) CHECK_FALSE(side->tasks[0].asked.limit);
  CHECK(limits_text(*chosen.b) == "10 instances of boolq");
  CHECK(chosen.a->damage.empty());
}

TEST_CASE("a task that the pair was not asked alike is taken of evaluations that were",
          "[report]") {
  EvaluatedSide a, b;
  for (const auto& [side, limit] :
       {std::pair(&a, R"({"limit":10})"), std::pair(&b, R"({"limit":20})")}) {
    side->add(7, "arc", -1, kPolicy, R"({"limit":5})");
    side->add_tasks(7, {"arc", "boolq"}, limit);
  }
  const auto chosen = choose(a, b);
  REQUIRE(chosen.a);
  REQUIRE(tasks_of(*chosen.a) == std::vector<std::string>{"arc", "boolq"});
  CHECK(chosen.a->tasks[0].asked.limit == 5);
  CHECK(chosen.b->tasks[0].asked.limit == 5);
  CHECK(chosen.b->tasks[1].asked.limit == 20);
}

TEST_CASE("evaluations of one precision are set against each other, whichever is later",
          "[report]") {
  constexpr const char* kBf16 = R"({"precision":"amp_bf16"})";
  EvaluatedSide a, b;
  a.add(7, "arc", -1, kPolicy);
  a.add(7, "arc", -1, kBf16);
  b.add(7, "arc", -1, kBf16);
  b.add(7, "arc", -1, kPolicy);
  const auto chosen = choose(a, b);
  REQUIRE(chosen.a);
  CHECK(chosen.a->policy == chosen.b->policy);
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
