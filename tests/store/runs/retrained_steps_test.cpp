#include "store/runs/retrained_steps.h"

#include "store/run_fixture.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::store;

namespace {

void set_numerics(test::RecordedCurve& run, const std::string& numerics,
                  const std::string& attempts = "1") {
  run.sql("UPDATE attempts SET policy = json_object('numerics', '" + numerics + "') WHERE " +
          attempts);
}

}  // namespace

TEST_CASE("a run that trained steps again with other bits disagrees with itself", "[store]") {
  test::RecordedCurve run;
  run.steps(1, 10);
  run.resume(6);
  run.steps(7, 12);
  set_numerics(run, "portable");
  CHECK_FALSE(disagreement_of(run.records(), run.id()));
  SECTION("in a loss") {
    run.sql("UPDATE steps SET ce_loss = ce_loss + 1e-12 WHERE attempt = 1 AND step >= 8");
    const auto found = disagreement_of(run.records(), run.id());
    REQUIRE(found);
    CHECK(found->step == 8);
    CHECK(found->column == "ce_loss");
    CHECK((found->before == 1 && found->after == 2));
    CHECK((found->steps == 4 && found->different == 3));
    CHECK(sentence_of(*found).find("3 of 4 have other bits") != std::string::npos);
  }
  SECTION("in the losses of micro-batches alone") {
    run.sql("UPDATE steps SET loss_hash = 'other' WHERE attempt = 1 AND step = 9");
    const auto found = disagreement_of(run.records(), run.id());
    REQUIRE(found);
    CHECK((found->step == 9 && found->column == "loss_hash"));
  }
  SECTION("also where a later attempt replaced both") {
    run.sql("UPDATE steps SET ce_loss = 0 WHERE attempt = 2 AND step = 7");
    run.resume(2);
    run.steps(3, 3);
    set_numerics(run, "portable");
    REQUIRE(disagreement_of(run.records(), run.id()));
    CHECK(disagreement_of(run.records(), run.id())->step == 7);
  }
  SECTION("of steps that were trained once nothing is said") {
    run.sql("UPDATE steps SET ce_loss = 0 WHERE step <= 6 OR step > 10");
    CHECK_FALSE(disagreement_of(run.records(), run.id()));
  }
}

TEST_CASE("steps of which one was trained under fast numerics may have other bits", "[store]") {
  test::RecordedCurve run;
  run.steps(1, 10);
  run.resume(6);
  run.steps(7, 12, 11);
  set_numerics(run, "portable");
  REQUIRE(disagreement_of(run.records(), run.id()));
  set_numerics(run, "fast", GENERATE("attempt = 1", "attempt = 2"));
  CHECK_FALSE(disagreement_of(run.records(), run.id()));
}
