#include "core/process/terminal.h"

#include "core/text/text.h"
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

TEST_CASE("durations are short and rounded to what matters", "[core]") {
  CHECK(format_duration(0) == "0s");
  CHECK(format_duration(59.4) == "59s");
  CHECK(format_duration(59.6) == "1m00s");
  CHECK(format_duration(3599.4) == "59m59s");
  CHECK(format_duration(3725) == "1h02m");
  CHECK(format_duration(200 * 3600.0) == "200h00m");
}

TEST_CASE("a line of progress is never wider than the terminal, and keeps what matters most",
          "[core]") {
  const std::vector<ProgressPart> parts = {
      {"step 123/4000", 0}, {"loss 5.4097", 1}, {"gnorm 1.203", 4}, {"lr 4.00e-04", 5},
      {"123 ms", 7},        {"MFU 40%", 6},     {"eta 1h02m", 2}};
  CHECK(progress_text(parts, " | ", std::nullopt) ==
        "step 123/4000 | loss 5.4097 | gnorm 1.203 | lr 4.00e-04 | 123 ms | MFU 40% | eta 1h02m");
  CHECK(progress_text(parts, " | ", 79) ==
        "step 123/4000 | loss 5.4097 | gnorm 1.203 | lr 4.00e-04 | MFU 40% | eta 1h02m");
  CHECK(progress_text(parts, " | ", 40) == "step 123/4000 | loss 5.4097 | eta 1h02m");
  CHECK(progress_text(parts, " | ", 20) == "step 123/4000");
  CHECK(progress_text(parts, " | ", 6) == "step …");
  for (std::size_t columns = 0; columns < 120; ++columns) {
    INFO(columns);
    CHECK(display_width(progress_text(parts, " | ", columns)) <= columns);
  }
}

TEST_CASE("the time that is left follows the pace of what was computed in this process", "[core]") {
  Pace pace;
  const auto left = [&](double fraction, std::int64_t tokens, double now) {
    return pace.seconds_left({.what = "arc_easy", .fraction = fraction, .tokens = tokens}, now);
  };
  CHECK_FALSE(left(0, 0, 0));
  CHECK_FALSE(left(0.5, 0, 1));  // an earlier process had done this half
  CHECK(left(0.75, 100, 11) == 10.0);
  CHECK(left(1, 200, 21) == 0.0);
  CHECK_FALSE(left(0, 200, 22));  // another part begins
  CHECK(left(0.5, 300, 32) == 10.0);
}
