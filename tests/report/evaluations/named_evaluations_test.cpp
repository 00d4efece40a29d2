#include "report/evaluations/named_evaluations.h"

#include "report/evaluated_side.h"
#include "support/catch.h"

namespace olmo::report {

using test::EvaluatedSide;

TEST_CASE("evaluations are told with what they asked, in the order in which they were made",
          "[report]") {
  EvaluatedSide side;
  side.add(20, "arc");
  side.add(10, "boolq");
  const auto found = named_evaluations(side.records());
  REQUIRE(found.size() == 2);
  CHECK(found[0].names == std::set<std::string>{"arc"});
  CHECK(found[1].names == std::set<std::string>{"boolq"});
  CHECK(found[1].place == 1);
  CHECK(in_both(found[0].names, found[1].names).empty());
}

TEST_CASE("models of other steps, limits or precisions are not asked alike", "[report]") {
  EvaluatedSide side;
  side.add(10, "arc");
  side.add(10, "boolq");
  side.add(20, "arc");
  side.add(10, "arc", -1, R"({"precision":"amp_bf16"})");
  side.add(10, "arc", -1, R"({"precision":"fp32"})", R"({"limit":5})");
  const auto& entries = side.records().evaluations;
  CHECK(asked_alike(entries[0], entries[1]));
  for (std::size_t i = 2; i < entries.size(); ++i) CHECK_FALSE(asked_alike(entries[0], entries[i]));
}

}  // namespace olmo::report
