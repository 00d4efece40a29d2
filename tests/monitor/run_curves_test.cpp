#include "monitor/run_curves.h"

#include <cmath>

#include "store/run_fixture.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::monitor;
using store::SeriesBins;

namespace {

SeriesBins bins_of(const test::RecordedCurve& run, std::size_t most) {
  SeriesBins bins({.columns = {"ce_loss"}}, most);
  bins.follow(run.records(), store::read_line(run.records(), run.id()));
  return bins;
}

}  // namespace

TEST_CASE("bins of a chart break where a value is missing", "[monitor]") {
  test::RecordedCurve run;
  run.steps(1, 5);
  run.sql("UPDATE steps SET ce_loss = 9e999 WHERE step = 3");
  const auto bins = chart_bins(bins_of(run, 64).bins(), 0);
  REQUIRE(bins.size() == 5);
  CHECK_FALSE(bins[1].broken);
  CHECK(bins[2].x == 3);
  CHECK(std::isnan(bins[2].mean));
  CHECK(bins[3].x == 4);
  CHECK(bins[3].broken);
  CHECK_FALSE(bins[4].broken);
}

TEST_CASE("the difference of two runs is the second minus the first at equal steps", "[monitor]") {
  test::RecordedCurve a, b;
  a.steps(1, 10);
  b.steps(1, 8, 12);
  const auto difference = monitor::difference(bins_of(a, 64), bins_of(b, 64), 0);
  REQUIRE(difference.size() == 8);
  for (const auto& bin : difference) CHECK(bin.mean == Approx(2 / bin.x));
}

TEST_CASE("runs of different lengths have their difference over the steps of both", "[monitor]") {
  test::RecordedCurve shorter, longer;
  shorter.steps(1, 100, 11);
  longer.steps(1, 1000);
  const auto narrow = bins_of(shorter, 64), wide = bins_of(longer, 64);
  REQUIRE(narrow.width() < wide.width());
  const auto difference = monitor::difference(wide, narrow, 0);
  CHECK_FALSE(difference.empty());
  for (const auto& bin : difference) {
    CHECK(bin.mean > 0);
    CHECK(bin.x <= 100);
  }
  const auto turned = monitor::difference(narrow, wide, 0);
  REQUIRE(turned.size() == difference.size());
  CHECK(turned.front().mean == Approx(-difference.front().mean));
}

TEST_CASE("curves that are not yet read show single points of the whole run", "[monitor]") {
  test::RecordedCurve run;
  run.steps(1, 100);
  const auto line = store::read_line(run.records(), run.id());
  RunCurves curves;
  curves.follow(run.records(), line, 10);
  CHECK_FALSE(curves.is_whole());
  CHECK(curves.curve(0).back().x == 100);
  curves.follow(run.records(), line, 1000);
  CHECK(curves.is_whole());
  CHECK(curves.curve(0).size() == 100);
}
