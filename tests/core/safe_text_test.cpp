#include "core/safe_text.h"

#include <nlohmann/json.hpp>

#include "core/json.h"
#include "support/catch.h"

namespace olmo {
namespace {
constexpr char kBad[] = "\xEF\xBF\xBD";
}

TEST_CASE("text that is shown has no commands, no hidden signs, and is UTF-8", "[core]") {
  CHECK(safe_text("plain, é 日本 ✓ −1\n\t") == "plain, é 日本 ✓ −1\n\t");
  for (const std::string hidden : {"\x1b", "\r", "\x7f", "\xC2\x9B", "\u202E", "\u2066", "\u200B",
                                   "\u200D", "\uFEFF", "\u2028", "\U000E0041"}) {
    INFO(hidden.size());
    CHECK(safe_text("a" + hidden + "b") == std::string("a") + kBad + "b");
    CHECK(html_text("a" + hidden + "b") == std::string("a") + kBad + "b");
    CHECK(markdown_text("a" + hidden + "b") == std::string("a") + kBad + "b");
  }
  for (const std::string bytes : {"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xe6\x97"})
    CHECK(safe_text(bytes).find_first_of(bytes) == std::string::npos);
  CHECK(safe_line("a\nb\tc") == "a b c");
}

TEST_CASE("no cell of CSV is a formula, and numbers stay numbers", "[core]") {
  for (const std::string formula :
       {"=1+1", "+A1", "-A1", "@SUM(A1)", "\t=1", "\r=1", "＝1", "-1+2"})
    CHECK(csv_text(formula).find('\'') <= 1);
  CHECK(csv_text("=1+1,\"x\"") == "\"'=1+1,\"\"x\"\"\"");
  for (const std::string plain : {"-5", "+2.5e-3", "-0", "7", "a=b", "run-1", ""})
    CHECK(csv_text(plain) == plain);
  CHECK(csv_cell("a\nb") == "\"a\nb\"");
}

TEST_CASE("JSON is UTF-8, whatever a name holds", "[core]") {
  const nlohmann::json json = {{"name", "a\xff"}};
  CHECK(json_text(json) == std::string(R"({"name":"a)") + kBad + "\"}");
  CHECK(json_text(json, 1).starts_with("{\n \"name\""));
}

}  // namespace olmo
