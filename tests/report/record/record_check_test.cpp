#include "report/record/record_check.h"

#include "core/error.h"
#include "store/run_fixture.h"
#include "store/unsealed.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::report;

TEST_CASE("a record is damaged, with the first thing that is wrong", "[report]") {
  test::RecordedCurve run;
  run.steps(1, 3);
  const RecordCheck check = check_record(run.records(), run.id());
  CHECK(check.is_damaged());
  CHECK_FALSE(check.reason.empty());
  CHECK(std::string(to_string(check.state)) == "damaged");
}

TEST_CASE("a record that cannot be read is damaged", "[report]") {
  test::RecordedCurve run;
  run.sql("UPDATE runs SET chain_format = 9");
  CHECK(check_record(run.records(), run.id()).reason.find("which never was") != std::string::npos);
  CHECK_THROWS_AS(check_record(run.records(), "no run"), Error);
}

TEST_CASE("a record of many steps is not read for a list, and says so", "[report]") {
  test::RecordedCurve run;
  run.steps(1, 3);
  CHECK(check_short_record(run.records(), run.id(), 3).is_damaged());
  const RecordCheck check = check_short_record(run.records(), run.id(), 2);
  CHECK(check.is_unchecked());
  CHECK(check.reason.find("was not checked, to be quick (3 steps)") == 0);
}

TEST_CASE("a record that its config cannot be held to is unchecked, and a log is sound",
          "[report]") {
  test::RecordedCurve newer;
  newer.sql(R"(UPDATE runs SET config = '{"a key of a newer program": 1}')");
  newer.sql(test::kUnseal);
  const RecordCheck check = check_record(newer.records(), newer.id());
  CHECK(check.is_unchecked());
  CHECK(check.reason.find("was not checked against its config") == 0);
  CHECK(std::string(to_string(check.state)) == "unchecked");
  test::RecordedCurve log("");
  log.import(1, "2.5");
  CHECK(std::string(to_string(check_record(log.records(), log.id()).state)) == "sound");
}
