#include "cli/screen/watch_frame.h"

#include <algorithm>

#include "cli/followed_runs.h"
#include "core/process/terminal.h"
#include "support/catch.h"
#include "support/says.h"

using namespace olmo;
using monitor::FollowedRun;
using test::followed;
using test::says;

namespace {

std::string text_of(const std::vector<FollowedRun>& runs, const cli::FrameOptions& options) {
  std::string text;
  for (const auto& line : cli::watch_frame(runs, options)) text += line + "\n";
  return text;
}

constexpr page::TerminalInk kGrey{.unicode = true, .colour = false};

}  // namespace

TEST_CASE("a frame never exceeds its terminal, whatever is shown", "[cli]") {
  test::RecordedCurve a, b, c;
  a.steps(1, 50);
  b.steps(1, 40, 12);
  a.db().event(3, "warning", std::string(500, 'w'));
  for (const std::size_t shown : {1U, 2U, 3U}) {
    std::vector<test::RecordedCurve*> chosen = {&a, &b, &c};
    chosen.resize(shown);
    const auto runs = followed(chosen);
    for (const std::size_t columns : {20U, 60U, 80U, 120U, 250U}) {
      for (const std::size_t rows : {2U, 5U, 10U, 24U, 50U}) {
        INFO(shown << " runs, " << columns << " x " << rows);
        const auto lines =
            cli::watch_frame(runs, {.columns = columns, .rows = rows, .ink = kGrey, .keys = true});
        CHECK(lines.size() <= rows);
        CHECK(std::ranges::all_of(
            lines, [&](const auto& line) { return display_width(line) <= columns; }));
      }
    }
  }
}

TEST_CASE("the frame of one run says how far it is and what was found", "[cli]") {
  test::RecordedCurve run;
  run.steps(1, 50);
  run.db().event(50, "checkpoint", "saved");
  run.db().record_checkpoint({.step = 50, .path = "step50", .bytes = 2000000, .sha256 = ""});
  const auto text = text_of(followed({&run}), {.columns = 100, .rows = 40, .ink = kGrey});
  for (const char* part :
       {"curve", "step 50 of 100 (50 %)", "400 tokens", "loss 0.2", "gradient norm 50",
        "16 tokens/s", "checkpoints  1 kept, last at step 50", "checkpoint: saved"}) {
    INFO(part << "\n" << text);
    CHECK(says(text, part));
  }
}

TEST_CASE("a loss that is not finite is said, alone and beside others", "[cli]") {
  test::RecordedCurve run, other;
  run.steps(1, 5);
  run.sql("UPDATE steps SET ce_loss = 9e999 WHERE step = 5");
  other.steps(1, 5);
  const cli::FrameOptions options{.columns = 100, .rows = 40, .ink = kGrey};
  CHECK(says(text_of(followed({&run}), options), "loss not finite"));
  CHECK(says(text_of(followed({&run}), options), "loss (× not finite)"));
  CHECK(says(text_of(followed({&run, &other}), options), "not finite"));
  CHECK(says(text_of(followed({&run, &other, &other}), options), "not finite"));
}

TEST_CASE("the frame of two runs has their difference", "[cli]") {
  test::RecordedCurve a, b;
  a.steps(1, 50);
  b.steps(1, 40, 12);
  const auto text = text_of(followed({&a, &b}), {.columns = 120, .rows = 40, .ink = kGrey});
  INFO(text);
  CHECK(says(text, "+0.05 at step 40"));
  CHECK(says(text, "loss, second minus first"));
}

TEST_CASE("of several runs one can be shown alone", "[cli]") {
  test::RecordedCurve a, b;
  a.steps(1, 50);
  b.steps(1, 7);
  const auto runs = followed({&a, &b});
  const auto text = text_of(runs, {.columns = 100, .rows = 30, .ink = kGrey, .selected = 2});
  CHECK(says(text, "step 7 of 100"));
  CHECK_FALSE(says(text, "step 50 of 100"));
}

TEST_CASE("why a run ended is told whole in a narrow terminal, and the newest events in a low one",
          "[cli]") {
  test::RecordedCurve run;
  run.steps(1, 50);
  for (int i = 1; i <= 9; ++i) run.db().event(i, "note", "number " + std::to_string(i));
  run.db().event(50, "error",
                 "the norm of the weights overflows; a smaller learning rate may help");
  run.sql("UPDATE runs SET status = 'diverged'");
  const auto text = text_of(followed({&run}), {.columns = 40, .rows = 17, .ink = kGrey});
  INFO(text);
  CHECK(says(text, "the norm of the weights overflows; a\nsmaller learning rate may help\n"));
  CHECK(says(text, "step 50 error"));
  CHECK(says(text, "step 9 note"));
  CHECK_FALSE(says(text, "step 7 note"));
}

TEST_CASE("a run without a step has no empty chart", "[cli]") {
  test::RecordedCurve run, other;
  const cli::FrameOptions options{.columns = 80, .rows = 24, .ink = kGrey};
  CHECK(says(text_of(followed({&run}), options), "no step yet"));
  CHECK_FALSE(says(text_of(followed({&run}), options), "│"));
  CHECK_FALSE(says(text_of(followed({&run, &other}), options), "│"));
}

TEST_CASE("evaluations that find no room are counted", "[cli]") {
  test::RecordedCurve run;
  run.steps(1, 50);
  test::evaluate(run, 30);
  const auto text = text_of(followed({&run}), {.columns = 80, .rows = 40, .ink = kGrey});
  INFO(text);
  CHECK(says(text, "evaluations  at step 50 · task_10 acc 0.5 · task_11 acc 0.5"));
  CHECK(says(text, " · and 21 more\n"));
}

TEST_CASE("names and messages of a record cannot command the terminal", "[cli]") {
  test::RecordedCurve run;
  run.steps(1, 5);
  run.sql("UPDATE runs SET name = char(27) || '[2Jx', status = 'finished'");
  run.db().event(1, "a\x1b[31m", "b\x1b]0;t\x07\r\nc");
  const auto runs = followed({&run});
  const auto text = text_of(runs, {.columns = 100, .rows = 30, .ink = kGrey});
  CHECK_FALSE(says(text, "\x1b"));
  CHECK_FALSE(says(text, "\x07"));
  CHECK_FALSE(says(cli::watch_line(runs[0]), "\x1b"));
}

TEST_CASE("a run that is not there yet has a sentence in its place", "[cli]") {
  std::vector<FollowedRun> runs;
  runs.emplace_back("/nowhere/run.db");
  runs[0].look(1);
  const auto text = text_of(runs, {.columns = 100, .rows = 30, .ink = kGrey});
  CHECK(says(text, "waiting"));
  CHECK(says(text, "there is no such run database"));
}
