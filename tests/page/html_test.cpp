#include "page/html.h"

#include <cmath>

#include "core/text/safe_text.h"
#include "support/catch.h"

namespace olmo::page {

TEST_CASE("numbers on a page are short and the same everywhere", "[page]") {
  CHECK(number(0.00123456) == "0.0012346");
  CHECK(number(1234567.0) == "1.2346×10⁶");
  CHECK(number(-12345.6) == "−12,346");
  CHECK(number(1e-9) == "1×10⁻⁹");
  CHECK(number(std::nan("")) == "not finite");
  CHECK(signed_number(0.5) == "+0.5");
  CHECK(count(-1234567) == "−1,234,567");
  CHECK(points(0.0012) == "+0.12");
  CHECK(points(-0.000001) == "0.00");
  CHECK(percent(0.4531) == "45.31 %");
  CHECK(done_percent(9999, 10'000) == "99 %");
  CHECK(done_percent(29, 100) == "29 %");
  CHECK(done_percent(100, 100) == "100 %");
  CHECK(compact(1.5e9) == "1.5B");
  CHECK(p_value(1e-7) == "< 0.0001");
  CHECK(exact(0.1) == "0.1");
}

TEST_CASE("text of a record cannot become markup", "[page]") {
  CHECK(escape("<b a='\"'>&") == "&lt;b a=&#39;&quot;&#39;&gt;&amp;");
  CHECK(escape("é✓") == "é✓");
  CHECK(escape("a\xff\xc0\xaf\xed\xa0\x80z").find_first_of("\xff\xc0") == std::string::npos);
  CHECK(escape("\xE2\x80\xAE") == "\xEF\xBF\xBD");
  CHECK(clip("ééé", 3) == "é…");
  CHECK(markdown_text("a|b\n<i>") == "a\\|b &lt;i&gt;");
  CHECK(markdown_text("*a* `b` \\") == "\\*a\\* \\`b\\` \\\\");
  CHECK(markdown_text("_a_ [b](c) [d]: e [f]") == "\\_a\\_ [b\\](c) [d\\]: e [f\\]");
}

TEST_CASE("Markdown leaves alone what is no mark", "[page]") {
  for (const char* plain : {"arc_challenge", "[−0.1, +0.3], inside", "OLMo's \"own\"", "1-2"})
    CHECK(markdown_text(plain) == plain);
}

}  // namespace olmo::page
