#include "core/terminal.h"

#include "core/utf8.h"
#include "support/catch.h"

using namespace olmo;

TEST_CASE("wide characters take two columns, marks none, and broken bytes one", "[core]") {
  CHECK(display_width("plain") == 5);
  CHECK(display_width("30.00 ± 4.61") == 12);
  CHECK(display_width("訓練") == 4);
  CHECK(display_width("한국어") == 6);
  CHECK(display_width("e\xCC\x81") == 1);
  CHECK(display_width("🚀x") == 3);
  CHECK(display_width("\xFFx") == 2);
}

TEST_CASE("a text is shortened by columns, at either end, and never within a character", "[core]") {
  CHECK(shortened("short", 5) == "short");
  CHECK(shortened("much too long", 6) == "much …");
  CHECK(shortened("/data/tokens.npy", 11, Keep::kEnd) == "…tokens.npy");
  CHECK(shortened("訓練の記録", 6) == "訓練…");
  CHECK(shortened("x", 0).empty());
  for (std::size_t width = 0; width < 14; ++width) {
    INFO(width);
    for (const auto keep : {Keep::kStart, Keep::kEnd}) {
      const auto text = shortened("a訓e\xCC\x81🚀 of OLMo", width, keep);
      CHECK(display_width(text) <= width);
      CHECK(is_utf8(text));
    }
  }
}

TEST_CASE("what is no terminal has no width", "[core]") { CHECK_FALSE(terminal_width(-1)); }
