#include "models/config_keys.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "support/catch.h"

using namespace olmo;
using Catch::Matchers::Equals;
using models::ConfigKeys;

TEST_CASE("keys of a config have the type that is asked for, or no value", "[models]") {
  const Json json = {{"n", 3}, {"x", 0.5}, {"yes", true}, {"name", "rms"}, {"none", nullptr}};
  const ConfigKeys keys(json, "config.json");
  CHECK(keys.integer("n") == 3);
  CHECK(keys.number("n") == 3.0);
  CHECK(keys.number("x") == 0.5);
  CHECK(keys.boolean("yes", false));
  CHECK(keys.text("name", "") == "rms");
  CHECK_FALSE(keys.integer("none"));
  CHECK_FALSE(keys.integer("absent"));
  CHECK(keys.contains("none"));
  CHECK(keys.text("none", "default") == "default");
}

TEST_CASE("a key of another type or value is refused by file and name", "[models]") {
  const Json json = {{"n", 3},
                     {"large", std::uint64_t{1} << 63U},
                     {"inner", {{"name", "rms"}, {"new", 1}, {"off", false}, {"none", nullptr}}}};
  const ConfigKeys keys(json, "config.json");
  const ConfigKeys inner = keys.required_object("inner");
  CHECK_THROWS_WITH((void)keys.text("n", ""), Equals("config.json: `n` expects text, got 3"));
  CHECK_THROWS_WITH((void)keys.integer("large"), Catch::Contains("`large` must lie in -109951"));
  CHECK_THROWS_WITH((void)keys.required_integer("m"),
                    Equals("config.json: `m` is missing: expected an integer"));
  CHECK_THROWS_WITH((void)keys.required_object("m"),
                    Equals("config.json: `m` is missing: expected an object"));
  CHECK_THROWS_WITH((void)keys.required_object("n"),
                    Equals("config.json: `n`: is not a JSON object"));
  CHECK_THROWS_WITH(
      inner.only("name", "layer"),
      Equals("config.json: `inner`: `name` is \"rms\", which is not supported: expected \"layer\" "
             "or null"));
  CHECK_NOTHROW(inner.only("name", "rms"));
  CHECK_NOTHROW(inner.only_keys({"name", "new"}));
  CHECK_THROWS_WITH(inner.only_keys({"name"}),
                    Equals("config.json: `inner`: `new` is 1, and is not known here"));
}
