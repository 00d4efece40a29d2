#include "serve/run_columns.h"

#include <set>

#include "support/catch.h"

namespace serve = olmo::serve;

TEST_CASE("each column of the table of runs has a name of its own and takes a run without values",
          "[serve]") {
  const serve::RunEntry nothing;
  std::set<std::string> ids;
  for (const auto& column : serve::run_columns()) {
    INFO(column.id);
    CHECK(ids.insert(column.id).second);
    CHECK(serve::run_column(column.id) == &column);
    CHECK_NOTHROW(column.html(nothing));
    CHECK_NOTHROW(column.value(nothing));
  }
  CHECK(serve::run_column("<b>") == nullptr);
}

TEST_CASE("a last loss that is not finite is told from a run without steps", "[serve]") {
  serve::RunEntry run;
  CHECK(serve::loss_html(run, 5).find("–") != std::string::npos);
  run.summary.step = 3;
  CHECK(serve::loss_html(run, 5).find("not finite") != std::string::npos);
  run.summary.ce_loss = 2.5;
  CHECK(serve::loss_html(run, 5) == "2.5");
}

TEST_CASE("a record that is not sound is marked, with the reason as text", "[serve]") {
  serve::RunEntry run;
  run.record = {.state = olmo::report::RecordCheck::State::kDamaged, .reason = "step 1: <b>"};
  CHECK(serve::record_html(run) ==
        " <span class=\"bad\" title=\"step 1: &lt;b&gt;\">damaged</span>");
  run.record = {.reason = "is being checked"};
  CHECK(serve::record_html(run) ==
        " <span class=\"note\" title=\"is being checked\">unchecked</span>");
  run.record = {.state = olmo::report::RecordCheck::State::kSound, .reason = {}};
  CHECK(serve::record_html(run).empty());
}

TEST_CASE("a recorded time is shown to the minute, what is none as it is", "[serve]") {
  CHECK(serve::short_time("2026-01-31T23:59:59.123Z") == "2026-01-31 23:59");
  CHECK(serve::short_time("<yesterday>") == "<yesterday>");
  CHECK(serve::short_time("").empty());
}
