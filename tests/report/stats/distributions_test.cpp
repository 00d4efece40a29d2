#include "report/stats/distributions.h"

#include <cmath>
#include <limits>

#include "core/error.h"
#include "report/golden_file.h"
#include "support/catch.h"

namespace olmo::report {
namespace {

double call(const std::string& name, const std::vector<double>& x) {
  const auto count = [&](std::size_t i) { return static_cast<std::int64_t>(x[i]); };
  if (name == "normal_cdf") return normal_cdf(x[0]);
  if (name == "normal_quantile") return normal_quantile(x[0]);
  if (name == "student_t_cdf") return student_t_cdf(x[0], x[1]);
  if (name == "student_t_quantile") return student_t_quantile(x[0], x[1]);
  if (name == "chi_squared_quantile") return chi_squared_quantile(x[0], x[1]);
  if (name == "binomial_pmf") return binomial_pmf(count(0), count(1), x[2]);
  if (name == "binomial_cdf") return binomial_cdf(count(0), count(1), x[2]);
  REQUIRE(name == "binomial_upper_limit");
  return binomial_upper_limit(count(0), count(1), x[2]);
}

}  // namespace

TEST_CASE("the distribution functions are scipy's", "[report]") {
  for (const Json& row : golden_file("distributions.json")) {
    INFO(row.dump());
    const double expected = row.at("value").get<double>();
    CHECK(call(row.at("name"), numbers(row.at("arguments"))) ==
          Approx(expected).epsilon(1e-10).margin(1e-14));
  }
}

TEST_CASE("the distribution functions take infinities and refuse what is outside", "[report]") {
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(normal_cdf(-infinity) == 0);
  CHECK(normal_cdf(infinity) == 1);
  CHECK(student_t_cdf(-infinity, 3) == 0);
  CHECK(student_t_cdf(infinity, 3) == 1);
  CHECK(binomial_cdf(-1, 4, 0.5) == 0);
  CHECK(binomial_cdf(4, 4, 0.5) == 1);
  CHECK(binomial_pmf(5, 4, 0.5) == 0);
  CHECK_THROWS_AS(normal_cdf(std::nan("")), Error);
  CHECK_THROWS_AS(normal_quantile(0), Error);
  CHECK_THROWS_AS(normal_quantile(std::nan("")), Error);
  CHECK_THROWS_AS(student_t_cdf(1, 0), Error);
  CHECK_THROWS_AS(student_t_quantile(1, 5), Error);
  CHECK_THROWS_AS(binomial_cdf(1, -1, 0.5), Error);
  CHECK_THROWS_AS(binomial_pmf(1, 2, std::nan("")), Error);
  CHECK_THROWS_AS(binomial_upper_limit(0, 0, 0.05), Error);
}

}  // namespace olmo::report
