#pragma once

#include <cstdint>

// What the report needs of Boost.Math, which is slow to compile and stays in distributions.cpp.
// Arguments outside the stated ranges throw Error(kUsage).

namespace olmo::report {

/// P(Z <= z) of the standard normal distribution; z may be infinite.
double normal_cdf(double z);
/// z with P(Z <= z) = p, for 0 < p < 1.
double normal_quantile(double p);

/// P(T <= t) of Student's distribution with `df` > 0 degrees of freedom; t may be infinite.
double student_t_cdf(double t, double df);
/// t with P(T <= t) = p, for 0 < p < 1 and df > 0.
double student_t_quantile(double p, double df);

/// t with P(T <= t) = p of Student's distribution with `df` > 0 degrees of freedom and the
/// noncentrality `shift`, 0 < p < 1.
double noncentral_t_quantile(double p, double df, double shift);

/// x with P(X <= x) = p of the chi-square distribution with df > 0 degrees of freedom, 0 < p < 1.
double chi_squared_quantile(double p, double df);

/// P(X = k) of X ~ Binomial(n, p), n >= 0, 0 <= p <= 1; 0 for k outside [0, n].
double binomial_pmf(std::int64_t k, std::int64_t n, double p);
/// P(X <= k) of X ~ Binomial(n, p); 0 for k < 0, 1 for k >= n.
double binomial_cdf(std::int64_t k, std::int64_t n, double p);
/// Clopper and Pearson's (1934) upper limit: the p with P(X <= k) = alpha; 1 for k = n.
double binomial_upper_limit(std::int64_t k, std::int64_t n, double alpha);

}  // namespace olmo::report
