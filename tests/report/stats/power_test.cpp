#include "report/stats/power.h"

#include <cmath>
#include <vector>

#include "core/error.h"
#include "support/catch.h"

namespace olmo::report {
namespace {

// The validation splits of hellaswag, boolq, piqa, winogrande, sciq, arc_easy, openbookqa,
// arc_challenge.
const std::vector<std::int64_t> kTasks = {10042, 3270, 1838, 1267, 1000, 570, 500, 299};

}  // namespace

// The table was made with the factor 2.927 for 2.9264, hence a tolerance above half of its last
// digit.
TEST_CASE("the eight tasks certify the margins of the planning table", "[report]") {
  struct Row {
    double d;
    std::vector<double> margins;  // percentage points
  };
  const std::vector<Row> table = {
      {0.005, {.21, .36, .48, .58, .65, .87, .93, 1.20}},
      {0.02, {.41, .72, .97, 1.16, 1.31, 1.73, 1.85, 2.39}},
      {0.05, {.65, 1.14, 1.53, 1.84, 2.07, 2.74, 2.93, 3.79}},
  };
  for (const Row& row : table) {
    for (std::size_t i = 0; i < kTasks.size(); ++i) {
      INFO("d = " << row.d << ", n = " << kTasks[i]);
      CHECK(100 * certifiable_margin(row.d, kTasks[i]) == Approx(row.margins[i]).margin(0.006));
    }
  }
}

TEST_CASE("a task's margin is one point, or what its size can certify", "[report]") {
  CHECK(task_margin(10042, 0.02) == 0.01);
  CHECK(task_margin(299, 0) == 0.01);
  CHECK(task_margin(299, 0.05) == Approx(2.927 * std::sqrt(0.05 / 299)).epsilon(5e-4));
}

TEST_CASE("the smallest detectable effect is 2.8 standard errors", "[report]") {
  CHECK(detectable_difference(0.01, 299) == Approx(0.0162).margin(5e-5));
  CHECK(detectable_difference(0.01, 500) == Approx(0.0125).margin(5e-5));
  CHECK(detectable_difference(0.01, 10042) == Approx(0.0028).margin(5e-5));
  CHECK(detectable_difference(0, 100) == 0);
}

TEST_CASE("the instances needed are the first that certify the margin", "[report]") {
  for (const double d : {0.0, 0.001, 0.02, 0.2}) {
    for (const double margin : {0.002, 0.01, 0.05}) {
      const auto n = instances_to_certify(d, margin);
      INFO("d = " << d << ", margin = " << margin << ": " << n);
      CHECK(certifiable_margin(d, n) <= margin * (1 + 1e-12));
      CHECK(certifiable_margin(d, n - 1) > margin);
    }
  }
  CHECK(instances_to_certify(0, 0.01) == 299);
}

TEST_CASE("impossible shares and sizes are refused", "[report]") {
  CHECK_THROWS_AS(certifiable_margin(0.1, 0), Error);
  CHECK_THROWS_AS(certifiable_margin(-0.1, 10), Error);
  CHECK_THROWS_AS(certifiable_margin(std::nan(""), 10), Error);
  CHECK_THROWS_AS(instances_to_certify(0.1, 0), Error);
  CHECK_THROWS_AS(detectable_difference(0.1, 10, 0.5), Error);
  CHECK_THROWS_AS(task_margin(10, 1.1), Error);
}

}  // namespace olmo::report
