#include "serve/evaluations.h"

#include "serve/evaluated_run.h"
#include "support/catch.h"

namespace olmo::serve {
namespace {

std::int64_t first_one(const eval::Example&) { return 0; }

}  // namespace

TEST_CASE("scores of a run's checkpoints are charted and listed with their intervals", "[serve]") {
  const test::TemporaryDirectory folder;
  test::ServedRun run(folder / "a", "first", 2);
  test::evaluate(run, 1, first_one);
  test::evaluate(run, 2, test::right_one);
  test::KnownSite site({folder.path()});
  const Response page =
      site.answer({.path = "/run/" + test::key_of(site, run.id()) + "/evaluations"});
  REQUIRE(page.status == 200);
  CHECK(page.body.find("Over the checkpoints") != std::string::npos);
  CHECK(page.body.find("Bars: 95 % intervals of each score.") != std::string::npos);
  CHECK(page.body.find("difference</i>") == std::string::npos);  // there is nothing beside it
  CHECK(page.body.find("100.00") != std::string::npos);
  CHECK(page.body.find(" to 100.00") != std::string::npos);
  CHECK(page.body.find("/instances?") != std::string::npos);
}

TEST_CASE("of several runs each score links to what was chosen differently", "[serve]") {
  const test::TemporaryDirectory folder;
  test::ServedRun a(folder / "a", "first", 2), b(folder / "b", "second", 2);
  const std::string of_a = test::evaluate(a, 2, first_one),
                    of_b = test::evaluate(b, 2, test::right_one);
  test::KnownSite site({folder.path()});
  const Response page =
      site.answer({.path = "/evaluations",
                   .query = {{"run", {test::key_of(site, a.id()), test::key_of(site, b.id())}}},
                   .parts = {}});
  CHECK(page.body.find("evaluation=" + of_b) != std::string::npos);
  CHECK(page.body.find("with=" + of_a) != std::string::npos);
}

TEST_CASE("an evaluation that was altered is named, and its scores are not shown", "[serve]") {
  const test::TemporaryDirectory folder;
  test::ServedRun run(folder / "a", "first", 2);
  const std::string id = test::evaluate(run, 2, test::right_one);
  run.db().records().write({{"UPDATE evaluation_metrics SET value = 0.12345", {}}});
  test::KnownSite site({folder.path()});
  const Response page =
      site.answer({.path = "/run/" + test::key_of(site, run.id()) + "/evaluations"});
  REQUIRE(page.status == 200);
  CHECK(page.body.find("12.3") == std::string::npos);
  CHECK(page.body.find("the evaluation " + id + " at step 2: arc_easy: its rows") !=
        std::string::npos);
  CHECK(page.body.find("olmo-harness eval RUN") == std::string::npos);  // there is one
}

TEST_CASE("a run without evaluations says how to make one", "[serve]") {
  const test::TemporaryDirectory folder;
  const test::ServedRun run(folder / "a", "first", 2);
  test::KnownSite site({folder.path()});
  const Response page =
      site.answer({.path = "/run/" + test::key_of(site, run.id()) + "/evaluations"});
  CHECK(page.body.find("olmo-harness eval RUN") != std::string::npos);
}

}  // namespace olmo::serve
