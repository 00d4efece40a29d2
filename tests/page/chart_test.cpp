#include "page/chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/catch.h"

namespace olmo::page {

TEST_CASE("a point that is not finite breaks the line, unless none is before it", "[page]") {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const auto bins = bins_of(points_of(std::vector<double>{1, 2, 3, none, 5, 6},
                                      std::vector<double>{none, 20, 30, 40, 50, none}));
  REQUIRE(bins.size() == 3);
  CHECK(bins[0].x == 2);
  CHECK_FALSE(bins[0].broken);
  CHECK(bins[1].mean == 30);
  CHECK_FALSE(bins[1].broken);
  CHECK(bins[2].x == 5);
  CHECK(bins[2].broken);
}

TEST_CASE("an axis of counts has ticks at whole numbers only, if it reaches any", "[page]") {
  const auto labels = [](double low, double high) {
    Axis axis;
    axis.low = low;
    axis.high = high;
    axis.counts = true;
    std::vector<std::string> texts;
    for (const Tick& tick : axis.ticks()) texts.push_back(tick.label);
    return texts;
  };
  CHECK(labels(1, 3) == std::vector<std::string>{"1", "2", "3"});
  CHECK(labels(0.99, 1.01) == std::vector<std::string>{"1"});
  CHECK(labels(0, 2e6) == std::vector<std::string>{"0", "500k", "1M", "1.5M", "2M"});
  CHECK(labels(0.2, 0.4).size() > 2);
}

TEST_CASE("a curve keeps its spikes and its gaps when it is drawn in bins", "[page]") {
  std::vector<std::int64_t> x;
  std::vector<double> y;
  for (int i = 0; i < 100'000; ++i) {
    x.push_back(i);
    y.push_back(i == 54'321 ? 9 : i == 77'777 ? -9 : 0);
  }
  y[20'000] = std::nan("");
  const auto bins = binned(x, y);
  CHECK(bins.size() <= 1100);
  const auto most = std::max_element(bins.begin(), bins.end(),
                                     [](const auto& a, const auto& b) { return a.high < b.high; });
  const auto least = std::min_element(bins.begin(), bins.end(),
                                      [](const auto& a, const auto& b) { return a.low < b.low; });
  CHECK(most->high == 9);
  CHECK(least->low == -9);
  CHECK(std::count_if(bins.begin(), bins.end(), [](const auto& bin) { return bin.broken; }) == 1);
  for (std::size_t i = 0; i < 64; ++i) CHECK(bins[i].x == static_cast<double>(i));
}

}  // namespace olmo::page
