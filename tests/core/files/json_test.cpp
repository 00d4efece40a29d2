#include "core/files/json.h"

#include <fstream>

#include <nlohmann/json.hpp>

#include "support/catch.h"
#include "support/temporary_directory.h"

namespace olmo {
namespace {

std::string refusal(std::string_view text, bool is_file = false) {
  try {
    (void)parse_strict_json(text, {.where = "x", .max_depth = 4, .is_file = is_file});
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kInput);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("JSON with a key twice in one object is refused, with its line", "[core]") {
  CHECK(refusal(R"({"a": 1, "b": {"a": 2}, "c": [{"a": 1}, {"a": 2}]})").empty());
  CHECK(refusal(R"({"a": 1, "a": 2})") == R"(x: has the key "a" twice in one object)");
  CHECK(refusal("{\"k\": {\n\"b\\u0061\": 1,\n\"ba\": 2}}", true) ==
        R"(x:3: has the key "ba" twice in one object)");
  CHECK(refusal(R"({"c": [{"a": 1}, {"b": 1, "b": 2}]})") ==
        R"(x: has the key "b" twice in one object)");
  CHECK(refusal("{\"\x1b\": 1, \"\x1b\": 2}").find('\x1b') == std::string::npos);
}

TEST_CASE("JSON that is damaged, too deep or beyond a double is refused", "[core]") {
  CHECK_THAT(refusal("{\n\n\"a\": }", true), Catch::StartsWith("x:3: is not valid JSON"));
  CHECK(refusal(std::string(100000, '[')) == "x: is nested too deep");
  CHECK_THAT(refusal("[1e400]"), Catch::StartsWith("x: is not valid JSON"));
  CHECK_THAT(refusal("[0x1p3]"), Catch::StartsWith("x: is not valid JSON"));
  CHECK_THAT(refusal("[\"\xff\"]"), Catch::StartsWith("x: is not valid JSON"));
  CHECK_THAT(refusal(std::string("{}\0garbage", 10)), Catch::StartsWith("x: is not valid JSON"));
  CHECK_THAT(refusal(""), Catch::StartsWith("x: is not valid JSON"));
}

TEST_CASE("a JSON file with a key twice is refused with file and line", "[core]") {
  const test::TemporaryDirectory folder;
  std::ofstream(folder / "a.json") << "{\n \"a\": 1,\n \"a\": 2\n}\n";
  CHECK_THROWS_WITH(read_json_file(folder / "a.json"),
                    (folder / "a.json").string() + ":3: has the key \"a\" twice in one object");
}

}  // namespace olmo
