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
  CHECK(names_of(found[0]) == std::set<std::string>{"arc"});
  CHECK(names_of(found[1]) == std::set<std::string>{"boolq"});
  CHECK(found[1].place == 1);
  CHECK(in_both(names_of(found[0]), names_of(found[1])).empty());
}

TEST_CASE("models of other steps or precisions are not the same", "[report]") {
  EvaluatedSide side;
  side.add(10, "arc");
  side.add(10, "boolq");
  side.add(20, "arc");
  side.add(10, "arc", -1, R"({"precision":"amp_bf16"})");
  const auto& entries = side.records().evaluations;
  CHECK(same_model(entries[0], entries[1]));
  for (std::size_t i = 2; i < entries.size(); ++i) CHECK_FALSE(same_model(entries[0], entries[i]));
}

TEST_CASE("tasks are asked alike where limit and length are the same", "[report]") {
  EvaluatedSide side;
  for (const char* settings : {"{}", R"({"tasks":[{"name":"arc"}]})", R"({"limit":5})",
                               R"({"max_length":5})", R"({"tasks":[{"name":"arc","limit":5}]})"})
    side.add(10, "arc", -1, R"({"precision":"fp32"})", settings);
  const auto found = named_evaluations(side.records());
  const std::set<std::string> arc = {"arc"};
  CHECK(asked_alike(found[0], found[1]) == arc);
  CHECK(asked_alike(found[2], found[4]) == arc);
  CHECK(asked_alike(found[0], found[2]).empty());
  CHECK(asked_alike(found[0], found[3]).empty());
}

}  // namespace olmo::report
