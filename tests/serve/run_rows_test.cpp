#include "serve/run_rows.h"

#include "store/run_fixture.h"
#include "support/catch.h"

namespace serve = olmo::serve;

TEST_CASE("rows of a table are read by the names of its columns", "[serve]") {
  olmo::test::RecordedCurve run;
  run.db().event(7, "note", "the first");
  run.db().event(9, "note", "the second");
  run.db().flush();
  const auto rows = serve::rows_of(run.db(), "events", run.id());
  REQUIRE(rows.size() == 2);
  CHECK(rows[1].integer("step") == 9);
  CHECK(rows[1].text("message") == "the second");
  CHECK(rows[1].number("step") == 9.0);
  CHECK(rows[1].text("no such column").empty());
  CHECK_FALSE(rows[1].number("message"));
  CHECK(rows[1].integer("no such column") == 0);
}
