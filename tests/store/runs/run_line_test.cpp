#include "store/runs/run_line.h"

#include "core/error.h"
#include "store/run_fixture.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::store;

TEST_CASE("the line of a run that was resumed leaves each attempt where a later one began",
          "[store]") {
  test::RecordedCurve run;
  run.steps(1, 10);
  run.resume(6);
  run.steps(7, 12);
  run.resume(3);
  run.steps(4, 5);
  const RunLine line = read_line(run.records(), run.id());
  CHECK((line.stretches == std::vector<Stretch>{{1, 1, 3}, {3, 4, 5}}));
  CHECK(line.first() == 1);
  CHECK(line.last() == 5);
}

TEST_CASE("an attempt without steps has no stretch, but cuts the one before", "[store]") {
  test::RecordedCurve run;
  run.steps(1, 10);
  run.resume(6);
  CHECK((read_line(run.records(), run.id()).stretches == std::vector<Stretch>{{1, 1, 6}}));
}

TEST_CASE("a run that has no steps yet has an empty line", "[store]") {
  const test::RecordedCurve run;
  CHECK(read_line(run.records(), run.id()).empty());
}

TEST_CASE("the line of an unknown run is refused", "[store]") {
  const test::RecordedCurve run;
  CHECK_THROWS_AS(read_line(run.records(), "nothing"), Error);
}

TEST_CASE("a line that grew continues the one before", "[store]") {
  test::RecordedCurve run;
  run.steps(1, 10);
  const RunLine before = read_line(run.records(), run.id());
  run.steps(11, 12);
  CHECK(common_end(before, read_line(run.records(), run.id())) == 10);
  run.resume(12);
  run.steps(13, 13);
  CHECK(common_end(before, read_line(run.records(), run.id())) == 10);
}

TEST_CASE("a line that a new attempt cut has its start in common with the one before", "[store]") {
  test::RecordedCurve run;
  run.steps(1, 10);
  const RunLine before = read_line(run.records(), run.id());
  run.resume(4);
  CHECK(common_end(before, read_line(run.records(), run.id())) == 4);
  run.steps(5, 20);
  CHECK(common_end(before, read_line(run.records(), run.id())) == 4);
}

TEST_CASE("lines of two runs have nothing in common", "[store]") {
  test::RecordedCurve run;
  run.steps(1, 3);
  RunLine line = read_line(run.records(), run.id()), other = line;
  other.run_id = "other";
  CHECK(common_end(line, other) < 1);
}
