#include "report/stats/distributions.h"

#include <cmath>

#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/non_central_t.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>

#include "report/stats/interval.h"

namespace olmo::report {
namespace {

void require_number(double value, const char* where) {
  if (std::isnan(value))
    throw Error(ErrorKind::kUsage, std::string(where) + ": expected a number, received NaN");
}

void require_binomial(std::int64_t n, double p) {
  if (n < 0 || !(p >= 0 && p <= 1))
    throw Error(ErrorKind::kUsage, "binomial: n must be at least 0 and p in [0, 1], received n = " +
                                       std::to_string(n) + ", p = " + std::to_string(p));
}

boost::math::binomial binomial(std::int64_t n, double p) { return {static_cast<double>(n), p}; }

}  // namespace

double normal_cdf(double z) {
  require_number(z, "normal_cdf");
  return boost::math::cdf(boost::math::normal(), z);
}

double normal_quantile(double p) {
  require_fraction(p, "normal_quantile: p");
  return boost::math::quantile(boost::math::normal(), p);
}

double student_t_cdf(double t, double df) {
  require_number(t, "student_t_cdf");
  require_positive(df, "student_t_cdf: degrees of freedom");
  if (std::isinf(t)) return t > 0 ? 1 : 0;
  return boost::math::cdf(boost::math::students_t(df), t);
}

double student_t_quantile(double p, double df) {
  require_fraction(p, "student_t_quantile: p");
  require_positive(df, "student_t_quantile: degrees of freedom");
  return boost::math::quantile(boost::math::students_t(df), p);
}

double noncentral_t_quantile(double p, double df, double shift) {
  require_fraction(p, "noncentral_t_quantile: p");
  require_positive(df, "noncentral_t_quantile: degrees of freedom");
  require_number(shift, "noncentral_t_quantile: the noncentrality");
  return boost::math::quantile(boost::math::non_central_t(df, shift), p);
}

double chi_squared_quantile(double p, double df) {
  require_fraction(p, "chi_squared_quantile: p");
  require_positive(df, "chi_squared_quantile: degrees of freedom");
  return boost::math::quantile(boost::math::chi_squared(df), p);
}

double binomial_pmf(std::int64_t k, std::int64_t n, double p) {
  require_binomial(n, p);
  if (k < 0 || k > n) return 0;
  return boost::math::pdf(binomial(n, p), static_cast<double>(k));
}

double binomial_cdf(std::int64_t k, std::int64_t n, double p) {
  require_binomial(n, p);
  if (k < 0) return 0;
  if (k >= n) return 1;
  return boost::math::cdf(binomial(n, p), static_cast<double>(k));
}

double binomial_upper_limit(std::int64_t k, std::int64_t n, double alpha) {
  require_fraction(alpha, "binomial_upper_limit: alpha");
  if (k < 0 || k > n || n == 0)
    throw Error(ErrorKind::kUsage, "binomial_upper_limit: k must be in [0, n] and n at least 1");
  if (k == n) return 1;
  return boost::math::binomial::find_upper_bound_on_p(static_cast<double>(n),
                                                      static_cast<double>(k), alpha);
}

}  // namespace olmo::report
