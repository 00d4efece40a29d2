#include "report/comparability/assumptions.h"

#include "core/error.h"
#include "support/catch.h"

using namespace olmo::report;

TEST_CASE("an assumption is a key and a value, which may hold an equals sign", "[report]") {
  const auto facts = parse_assumptions({"data_order=equal", "config=a=b"});
  CHECK(facts.at("data_order") == "equal");
  CHECK(facts.at("config") == "a=b");
  for (const char* text : {"", "key", "key=", "=value"})
    CHECK_THROWS_WITH(parse_assumptions({text}), Catch::Contains("expected KEY=VALUE"));
}
