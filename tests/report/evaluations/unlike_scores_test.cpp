#include "report/evaluations/unlike_scores.h"

#include "report/evaluated_side.h"
#include "support/catch.h"

namespace olmo::report {

using test::EvaluatedSide;

TEST_CASE("scores that differ at an earlier step are found", "[report]") {
  EvaluatedSide a, b;
  for (const std::int64_t step : {10, 20}) {
    a.add(step, "arc");
    b.add(step, "arc", step == 10 ? -1.25 : -1);
  }
  CHECK(scores_that_differ(a.records(), b.records()).first == "the scores of arc at step 10");
  CHECK(scores_that_differ(a.records(), a.records()).first.empty());
}

TEST_CASE("scores of texts cut to another length are not held against each other", "[report]") {
  EvaluatedSide a, b;
  a.add(10, "arc", -1, R"({"precision":"fp32"})", R"({"max_length":64})");
  b.add(10, "arc", -1.25, R"({"precision":"fp32"})", R"({"max_length":32})");
  CHECK(scores_that_differ(a.records(), b.records()).first.empty());
}

TEST_CASE("scores of an earlier step that were altered are damage, not another score", "[report]") {
  EvaluatedSide a, b;
  for (const std::int64_t step : {10, 20})
    for (EvaluatedSide* side : {&a, &b}) side->add(step, "arc");
  b.alter_step(10);
  const auto found = scores_that_differ(a.records(), b.records());
  CHECK(found.damage_a.empty());
  REQUIRE(found.damage_b.size() == 1);
  CHECK(found.damage_b[0].find(" at step 10: arc: its rows, or what they were recorded under, are "
                               "not those that the evaluation ended with") != std::string::npos);
}

}  // namespace olmo::report
