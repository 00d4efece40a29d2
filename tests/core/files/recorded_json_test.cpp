#include "core/files/recorded_json.h"

#include <map>

#include <nlohmann/json.hpp>

#include "support/catch.h"

using namespace olmo;
using Json = nlohmann::json;

namespace {

std::string nested(std::size_t levels) {
  return std::string(levels, '[') + std::string(levels, ']');
}

}  // namespace

TEST_CASE("what is no JSON, or is nested too deep, is no value", "[core]") {
  CHECK(recorded_json(R"({"a": [1]})") == Json{{"a", {1}}});
  CHECK(recorded_json(nested(64)).is_array());
  for (const std::string& text : {std::string(), std::string("{"), nested(65), nested(1'000'000),
                                  "{\"a\": " + nested(1'000'000) + "}"})
    CHECK(recorded_json(text).is_discarded());
}

TEST_CASE("the members of a recorded object can keep their order", "[core]") {
  CHECK(recorded_json<nlohmann::ordered_json>(R"({"b":1,"a":2})").dump() == R"({"b":1,"a":2})");
}

TEST_CASE("the leaves of an object are found at their places", "[core]") {
  std::map<std::string, std::string> leaves;
  for_each_leaf(recorded_json(R"({"a":{"b":1,"c":{"d":null}},"e":[{"f":2}],"g":{}})"), "",
                [&](const auto& place, const auto& value) { leaves[place] = value.dump(); });
  CHECK(leaves == std::map<std::string, std::string>{
                      {"a.b", "1"}, {"a.c.d", "null"}, {"e", R"([{"f":2}])"}, {"g", "{}"}});
  for_each_leaf(Json(7), "policy",
                [](const auto& place, const auto&) { CHECK(place == "policy"); });
}
