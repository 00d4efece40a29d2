#pragma once

#include <span>
#include <vector>

namespace olmo::report {

/// Holm's step-down adjustment ("A simple sequentially rejective multiple test procedure", Scand.
/// J. Stat. 1979) in the order of `p`: rejecting where the adjusted value is at most alpha keeps
/// the chance of any false rejection at alpha, whatever the dependence. For tests of differences.
/// Throws Error(kInput) if `p` is empty or a value is not in [0, 1].
std::vector<double> holm_adjusted(std::span<const double> p);

/// The p-value of "not all of these equivalences hold": the largest (intersection-union test,
/// Berger 1982). All parts must pass, each at alpha, so no correction is needed. Throws as
/// holm_adjusted; in particular an empty list does not pass.
double intersection_union_p(std::span<const double> p);

}  // namespace olmo::report
