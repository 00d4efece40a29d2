#include "report/evaluations/evaluation_places.h"

#include "report/run_of_losses.h"
#include "support/catch.h"

using namespace olmo::report;

namespace {

/// Twelve steps of so many tokens each.
Side side_of(std::int64_t tokens) {
  Side side;
  side.run = run_of_losses(std::vector<double>(12, 3), tokens);
  return side;
}

}  // namespace

TEST_CASE("batches of other sizes meet at equal tokens, those of one size at equal steps",
          "[report]") {
  const Side larger = side_of(200), smaller = side_of(100);
  const EvaluationPlaces unlike(larger, smaller), alike(smaller, smaller);
  CHECK(unlike.same(5, 10));
  CHECK_FALSE(unlike.same(10, 10));
  CHECK(unlike.same(0, 0));
  CHECK(unlike.text('A', 5) == "step 5 (1,000 tokens)");
  CHECK(alike.same(10, 10));
  CHECK_FALSE(alike.same(5, 10));
  CHECK(alike.same(20, 20));  // behind the last row
  CHECK(alike.text('A', 5) == "step 5");
}

TEST_CASE("a log that leaves out some tokens of a step meets the other at its steps", "[report]") {
  const Side all = side_of(1000), less = side_of(999);
  CHECK(EvaluationPlaces(all, less).same(10, 10));
}

TEST_CASE("where a side tells no tokens, or no run, equal steps meet", "[report]") {
  const Side told = side_of(100), none;
  Side untold = side_of(200);
  untold.run->tokens_known = false;
  CHECK(EvaluationPlaces(untold, told).same(10, 10));
  CHECK(EvaluationPlaces(none, told).same(10, 10));
}

TEST_CASE("tokens are known between the rows of a log of even steps, and not behind it",
          "[report]") {
  auto run = run_of_losses({3, 3, 3}, 100);
  run.steps.step = {10, 20, 30};
  run.steps.tokens = {1000, 2000, 3500};
  CHECK(tokens_at(run, 0) == 0);
  CHECK(tokens_at(run, 5) == 500);
  CHECK(tokens_at(run, 15) == 1500);
  CHECK(tokens_at(run, 30) == 3500);
  CHECK_FALSE(tokens_at(run, 25));
  CHECK_FALSE(tokens_at(run, 31));
}
