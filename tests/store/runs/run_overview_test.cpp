#include "store/runs/run_overview.h"

#include "store/run_fixture.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::store;
using olmo::test::RecordedCurve;

TEST_CASE("the overview of a run tells its last step on the line that led to its weights",
          "[store]") {
  RecordedCurve run;
  run.steps(1, 10);
  run.resume(4);
  run.steps(5, 6, 7);
  const auto overview = read_overview(run.records(), run.id());
  CHECK(overview.step == 6);
  CHECK(overview.tokens == 48);
  CHECK(overview.ce_loss == 7.0 / 6);
  CHECK(overview.chain_hash == "0");
  CHECK(overview.attempts == 2);
  CHECK(overview.max_steps == 100);
}

TEST_CASE("the overview says the same as the view of the database", "[store]") {
  RecordedCurve run;
  run.steps(1, 10);
  run.resume(4);
  run.steps(5, 6, 7);
  run.resume(6);
  run.db().tag(run.id(), "b", false);
  run.db().tag(run.id(), "a", false);
  const auto overview = read_overview(run.records(), run.id());
  int rows = 0;
  run.records().query(
      "SELECT name, status, n_parameters, step, tokens, ce_loss, tokens_per_second, tags FROM "
      "run_overview",
      {}, [&](const auto&, const auto& row) {
        ++rows;
        CHECK(std::get<std::string>(row[0]) == overview.name);
        CHECK(std::get<std::string>(row[1]) == overview.status);
        CHECK(std::get<std::int64_t>(row[2]) == overview.n_parameters);
        CHECK(std::get<std::int64_t>(row[3]) == overview.step);
        CHECK(std::get<std::int64_t>(row[4]) == overview.tokens);
        CHECK(std::get<double>(row[5]) == overview.ce_loss);
        CHECK(std::get<double>(row[6]) == overview.tokens_per_second);
        CHECK(std::get<std::string>(row[7]) == "a b");
      });
  CHECK(rows == 1);
  CHECK(overview.tags == std::vector<std::string>{"a", "b"});
}

TEST_CASE("a run without a step has an overview without one", "[store]") {
  const RecordedCurve run;
  const auto overview = read_overviews(run.records()).at(0);
  CHECK(overview.run_id == run.id());
  CHECK_FALSE(overview.step);
  CHECK_FALSE(overview.ce_loss);
  CHECK(overview.chain_hash.empty());
  CHECK(overview.evaluations == 0);
}

TEST_CASE("of an import that tells tokens alone the overview has no step", "[store]") {
  RecordedCurve run("");
  run.import(100, "2.5");
  run.import(200, "2.25");
  const auto overview = read_overview(run.records(), run.id());
  CHECK_FALSE(overview.step);
  CHECK(overview.ce_loss == 2.25);
}

TEST_CASE("the overview of a run that is not there is refused", "[store]") {
  const RecordedCurve run;
  CHECK_THROWS_WITH(read_overview(run.records(), "other"), Catch::Contains("holds no run other"));
}
