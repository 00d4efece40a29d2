#include "report/record/asked.h"

#include "support/catch.h"

namespace olmo::report {

TEST_CASE("an evaluation's limit and length hold for all that it names", "[report]") {
  const AskedParts asked(R"({"limit":100,"max_length":64,"tasks":[{"name":"piqa"}]})");
  CHECK(asked.of("piqa") == Asked{100, 64, {}});
  CHECK(asked.of("not named") == Asked{100, 64, {}});
}

TEST_CASE("an evaluator's limit stands before that of all", "[report]") {
  const AskedParts asked(
      R"({"limit":null,"tasks":[{"name":"piqa","limit":5},{"name":"arc"}],
          "suites":[{"name":"c4","only_documents":[3,5]}]})");
  CHECK(asked.of("piqa").limit == 5);
  CHECK_FALSE(asked.of("arc").limit);
  CHECK(asked.of("c4").limit == 2);
}

TEST_CASE("the token before a task's requests is not the one before a suite's texts", "[report]") {
  const AskedParts asked(
      R"({"prefix_token":1,"eos_token_id":2,"tasks":[{"name":"piqa"}],"suites":[{"name":"c4"}]})");
  CHECK(asked.of("piqa").first_token == 1);
  CHECK(asked.of("c4").first_token == 2);
}

TEST_CASE("of two lengths a task has its own, or is not known to have either", "[report]") {
  const auto length = [](const std::string& task) {
    return AskedParts(
        R"({"max_length":64,"olmo_max_length":32,"suites":[{"name":"c4"}],"tasks":[)" + task +
        "]}");
  };
  CHECK(length(R"({"name":"piqa","max_length":32})").of("piqa").max_length == 32);
  CHECK_FALSE(length(R"({"name":"piqa"})").of("piqa").max_length);
  CHECK(length("").of("c4").max_length == 64);
  const AskedParts equal(R"({"max_length":64,"olmo_max_length":64,"tasks":[{"name":"piqa"}]})");
  CHECK(equal.of("piqa").max_length == 64);
}

TEST_CASE("all instances are more than any limit", "[report]") {
  CHECK(asks_more({.limit = 3}, {.limit = 2}));
  CHECK(asks_more({}, {.limit = 2}));
  CHECK_FALSE(asks_more({.limit = 2}, {.limit = 2}));
  CHECK_FALSE(asks_more({.limit = 2}, {}));
  CHECK_FALSE(asks_more({}, {}));
}

TEST_CASE("settings of other forms than ours tell nothing", "[report]") {
  for (const char* settings :
       {"", "{}", "[1]", "nonsense", R"({"tasks":"piqa"})", R"({"tasks":[{"name":7},"piqa"]})",
        R"({"limit":"all","tasks":[{"name":"piqa","limit":1.5}],"suites":{"name":"piqa"}})"})
    CHECK(AskedParts(settings).of("piqa") == Asked{});
}

}  // namespace olmo::report
