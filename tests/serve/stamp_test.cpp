#include "serve/stamp.h"

#include "store/run_fixture.h"
#include "support/catch.h"

namespace serve = olmo::serve;

TEST_CASE("a database's stamp changes with each commit and with nothing else", "[serve]") {
  olmo::test::RecordedCurve run;
  run.steps(1, 1);
  const auto before = serve::stamp_of(run.path());
  CHECK(before.written > 0);
  CHECK(serve::stamp_of(run.path()) == before);
  olmo::store::RunDb::open(run.path(), olmo::store::OpenMode::kReadOnly);
  CHECK(serve::stamp_of(run.path()) == before);
  run.steps(2, 2);
  CHECK_FALSE(serve::stamp_of(run.path()) == before);
}

TEST_CASE("a database that is not there has the empty stamp", "[serve]") {
  CHECK(serve::stamp_of("/no/such/run.db") == serve::Stamp{});
}
