#include "store/runs/series.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

#include "core/error.h"
#include "store/run_fixture.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::store;
using test::RecordedCurve;

namespace {

const Quantities kLoss{.columns = {"ce_loss"}};

RunLine line_of(const RecordedCurve& run) { return read_line(run.records(), run.id()); }

/// What bins of `quantities` are when they are made at once.
std::vector<SeriesBin> bins_of(const RecordedCurve& run, const Quantities& quantities,
                               std::size_t most) {
  SeriesBins bins(quantities, most);
  CHECK(bins.follow(run.records(), line_of(run)));
  return bins.bins();
}

/// Equal but for the rounding of means, whose terms come in another order.
bool same(const std::vector<SeriesBin>& a, const std::vector<SeriesBin>& b) {
  return std::ranges::equal(a, b, [](const SeriesBin& x, const SeriesBin& y) {
    return x.first == y.first && x.last == y.last && x.rows == y.rows &&
           std::ranges::equal(x.of, y.of, [](const SeriesSpread& p, const SeriesSpread& q) {
             return p.first == q.first && p.low == q.low && p.high == q.high && p.last == q.last &&
                    p.values == q.values && std::fabs(p.mean - q.mean) < 1e-12;
           });
  });
}

}  // namespace

TEST_CASE("a column that is none of a step is refused by name", "[store]") {
  RecordedCurve run;
  run.steps(1, 2);
  std::string said;
  try {
    pick_points(run.records(), line_of(run), {.columns = {"x FROM runs; --"}}, 10);
  } catch (const Error& error) {
    said = error.what();
  }
  CHECK_THAT(said, Catch::Matchers::Contains("steps have no number 'x FROM runs; --'"));
  // Each that is offered instead is one.
  const auto list = said.substr(said.find("(they have ") + std::strlen("(they have "));
  std::istringstream offered(list.substr(0, list.find(')')));
  std::size_t found = 0;
  for (std::string column; offered >> column; ++found) {
    if (column.ends_with(',')) column.pop_back();
    INFO(column);
    CHECK(pick_points(run.records(), line_of(run), {.columns = {column}}, 10).step.size() == 2);
  }
  CHECK(found == 15);
}

TEST_CASE("picked points are recorded rows, from the first to the last", "[store]") {
  RecordedCurve run;
  run.steps(1, 1000);
  const auto points =
      pick_points(run.records(), line_of(run), {.columns = {"ce_loss", "tokens"}}, 50);
  REQUIRE(points.step.size() <= 50);
  CHECK(points.step.size() > 40);
  CHECK(points.step.front() == 1);
  CHECK(points.step.back() == 1000);
  CHECK(std::ranges::is_sorted(points.step));
  for (std::size_t i = 0; i < points.step.size(); ++i) {
    CHECK(points.values[0][i] == 10 / static_cast<double>(points.step[i]));
    CHECK(points.values[1][i] == 8 * static_cast<double>(points.step[i]));
  }
}

TEST_CASE("all rows of a short run are picked", "[store]") {
  RecordedCurve run;
  run.steps(1, 7);
  CHECK(pick_points(run.records(), line_of(run), kLoss, 100).step.size() == 7);
}

TEST_CASE("points are picked from the steps that survive", "[store]") {
  RecordedCurve run;
  run.steps(1, 10);
  run.resume(5);
  run.steps(6, 8, 100);
  const auto points = pick_points(run.records(), line_of(run), kLoss, 100);
  CHECK(points.step == std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(points.values[0][4] == 2);
  CHECK(points.values[0][5] == 100.0 / 6);
}

TEST_CASE("points are picked within a range", "[store]") {
  RecordedCurve run;
  run.steps(1, 100);
  const auto points = pick_points(run.records(), line_of(run), kLoss, 200, {40, 45});
  CHECK(points.step == std::vector<std::int64_t>{40, 41, 42, 43, 44, 45});
  CHECK(pick_points(run.records(), line_of(run), kLoss, 200, {101, 200}).step.empty());
}

TEST_CASE("points after a step are what came since", "[store]") {
  RecordedCurve run;
  run.steps(1, 10);
  CHECK(points_after(run.records(), line_of(run), kLoss, 7, 100).step ==
        std::vector<std::int64_t>{8, 9, 10});
  CHECK(points_after(run.records(), line_of(run), kLoss, 7, 2).step ==
        std::vector<std::int64_t>{8, 9});
  CHECK(points_after(run.records(), line_of(run), kLoss, 10, 2).step.empty());
}

TEST_CASE("a value that was not recorded is no number", "[store]") {
  RecordedCurve run;
  run.steps(1, 1);
  CHECK(std::isnan(
      pick_points(run.records(), line_of(run), {.columns = {"z_loss"}}, 10).values[0][0]));
}

TEST_CASE("an imported run has curves over its positions", "[store]") {
  RecordedCurve run("");
  for (const std::int64_t tokens : {1000, 2000, 3000})
    run.import(tokens, tokens == 2000 ? "NULL" : "2.5");
  const auto points =
      pick_points(run.records(), line_of(run), {.columns = {"loss", "lr", "param_norm"}}, 10);
  CHECK(points.step == std::vector<std::int64_t>{1000, 2000, 3000});
  CHECK(points.values[0][0] == 2.5);
  CHECK(std::isnan(points.values[0][1]));
  CHECK(points.values[1][2] == 0.5);
  CHECK(std::isnan(points.values[2][0]));
}

TEST_CASE("a metric has a curve, from the state before the first step on", "[store]") {
  RecordedCurve run;
  run.steps(1, 10);
  run.metric(0, "eval/ce_loss", 5);
  run.metric(4, "eval/ce_loss", 4);
  run.metric(4, "other", 40);
  run.metric(8, "eval/ce_loss", 3);
  run.resume(6);
  run.steps(7, 10);
  run.metric(8, "eval/ce_loss", 2);
  CHECK(metric_names(run.records(), run.id()) == std::vector<std::string>{"eval/ce_loss", "other"});
  const auto bins = bins_of(run, {.metric = "eval/ce_loss"}, 100);
  REQUIRE(bins.size() == 3);
  CHECK(bins[0].first == 0);
  CHECK(bins[2].first == 8);
  CHECK(bins[2].of[0].mean == 2);
}

TEST_CASE("bins of a short run are its steps", "[store]") {
  RecordedCurve run;
  run.steps(1, 64);
  const auto bins = bins_of(run, kLoss, 64);
  REQUIRE(bins.size() == 64);
  CHECK(bins[63].of[0].mean == 10.0 / 64);
}

TEST_CASE("bins know the extremes, ends and mean of all their rows", "[store]") {
  RecordedCurve run;
  run.steps(1, 1000);
  run.sql("UPDATE steps SET ce_loss = 99 WHERE step = 777");
  const auto bins = bins_of(run, kLoss, 64);
  CHECK(bins.size() <= 64);
  std::int64_t rows = 0, after = 0;
  double highest_late = 0;
  for (const auto& bin : bins) {
    CHECK(bin.first > after);
    after = bin.last;
    rows += bin.rows;
    double sum = 0;
    for (auto step = bin.first; step <= bin.last; ++step)
      sum += step == 777 ? 99 : 10 / static_cast<double>(step);
    CHECK(bin.of[0].mean == Approx(sum / static_cast<double>(bin.rows)));
    CHECK(bin.of[0].first == 10 / static_cast<double>(bin.first));
    CHECK(bin.of[0].last == 10 / static_cast<double>(bin.last));
    if (bin.first > 500) highest_late = std::max(highest_late, bin.of[0].high);
  }
  CHECK(rows == 1000);
  CHECK(highest_late == 99);
}

TEST_CASE("bins that are followed in portions are those of one reading", "[store]") {
  RecordedCurve run;
  run.steps(1, 100);
  SeriesBins bins(kLoss, 64);
  CHECK_FALSE(bins.follow(run.records(), line_of(run), 30));
  CHECK(bins.read_to() == 30);
  CHECK_FALSE(bins.follow(run.records(), line_of(run), 70));
  CHECK(bins.follow(run.records(), line_of(run), 30));
  run.steps(101, 400);
  CHECK(bins.follow(run.records(), line_of(run)));
  CHECK(same(bins.bins(), bins_of(run, kLoss, 64)));
}

TEST_CASE("bins follow a new attempt that replaced steps", "[store]") {
  RecordedCurve run;
  run.steps(1, 300);
  SeriesBins bins(kLoss, 64);
  CHECK(bins.follow(run.records(), line_of(run)));
  run.resume(150);
  CHECK(bins.follow(run.records(), line_of(run)));
  CHECK(bins.read_to() == 150);
  run.steps(151, 300, 20);
  CHECK(bins.follow(run.records(), line_of(run)));
  CHECK(same(bins.bins(), bins_of(run, kLoss, 64)));
}

TEST_CASE("bins of equal width hold the same steps, whatever the lengths of the runs", "[store]") {
  RecordedCurve shorter, longer;
  shorter.steps(1, 600);
  longer.steps(1, 700);
  SeriesBins a(kLoss, 64), b(kLoss, 64);
  a.follow(shorter.records(), line_of(shorter));
  b.follow(longer.records(), line_of(longer));
  REQUIRE(a.width() == b.width());
  for (std::size_t i = 0; i + 1 < a.bins().size(); ++i) {
    CHECK(a.bins()[i].first == b.bins()[i].first);
    CHECK(a.bins()[i].last == b.bins()[i].last);
  }
}

TEST_CASE("values that are not finite count as rows and as no values", "[store]") {
  RecordedCurve run;
  run.steps(1, 200);
  run.sql("UPDATE steps SET ce_loss = 9e999 WHERE step >= 150");
  const auto bins = bins_of(run, kLoss, 64);
  CHECK(bins.back().of[0].values == 0);
  CHECK(std::isnan(bins.back().of[0].mean));
  CHECK(bins.back().rows > 0);
}

TEST_CASE("steps that no run can have end no reading", "[store]") {
  RecordedCurve run;
  run.steps(1, 3);
  run.sql(
      "INSERT INTO steps SELECT run_id, attempt, v.column1, epoch, tokens, lr, ce_loss, "
      "ce_loss_per_label, z_loss, loss, grad_norm, max_grad_norm, clipping_rate, param_norm, "
      "masked_instances, seconds, tokens_per_second, mfu, batch_hash, chain_hash, loss_hash FROM "
      "steps, (VALUES (-9223372036854775808), (-4), (9223372036854775807)) AS v WHERE step = 1");
  const auto line = line_of(run);
  CHECK(pick_points(run.records(), line, kLoss, 30).step.back() ==
        std::numeric_limits<std::int64_t>::max());
  SeriesBins bins(kLoss, 64);
  CHECK(bins.follow(run.records(), line));
  CHECK(bins.bins().size() <= 64);
}
