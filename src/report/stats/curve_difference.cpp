#include "report/stats/curve_difference.h"

#include <string>

#include "core/error.h"
#include "report/stats/checks.h"

namespace olmo::report {
namespace {

void check(const Curve& curve) {
  if (curve.tokens.size() != curve.values.size())
    throw Error(ErrorKind::kInput, "curve: each value needs its token count, received " +
                                       std::to_string(curve.values.size()) + " values and " +
                                       std::to_string(curve.tokens.size()) + " token counts");
  require_finite(curve.values, "curve");
  for (std::size_t i = 1; i < curve.tokens.size(); ++i) {
    if (curve.tokens[i] <= curve.tokens[i - 1])
      throw Error(ErrorKind::kInput, "curve: token counts must ascend, point " + std::to_string(i) +
                                         " has " + std::to_string(curve.tokens[i]) + " after " +
                                         std::to_string(curve.tokens[i - 1]));
  }
  if (curve.tokens[0] < 0) throw Error(ErrorKind::kInput, "curve: a token count is negative");
}

struct OwnedCurve {
  std::vector<std::int64_t> tokens;
  std::vector<double> values;
};

/// The means of the points in each bin that has any.
OwnedCurve bin_means(const Curve& curve, std::int64_t bin_tokens) {
  OwnedCurve means;
  for (std::size_t i = 0; i < curve.tokens.size();) {
    const std::int64_t bin = (curve.tokens[i] + bin_tokens - 1) / bin_tokens;
    double sum = 0;
    const std::size_t first = i;
    for (; i < curve.tokens.size() && curve.tokens[i] <= bin * bin_tokens; ++i)
      sum += curve.values[i];
    means.tokens.push_back(bin * bin_tokens);
    means.values.push_back(sum / static_cast<double>(i - first));
  }
  return means;
}

}  // namespace

std::vector<std::pair<std::size_t, std::size_t>> common_places(std::span<const std::int64_t> a,
                                                               std::span<const std::int64_t> b) {
  std::vector<std::pair<std::size_t, std::size_t>> places;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i] == b[j])
      places.emplace_back(i++, j++);
    else
      ++(a[i] < b[j] ? i : j);
  }
  return places;
}

CurveDifference difference_on_common_tokens(const Curve& a, const Curve& b) {
  check(a);
  check(b);
  CurveDifference difference;
  for (const auto& [i, j] : common_places(a.tokens, b.tokens)) {
    difference.tokens.push_back(a.tokens[i]);
    difference.values.push_back(b.values[j] - a.values[i]);
  }
  difference.only_a = std::ssize(a.tokens) - std::ssize(difference.tokens);
  difference.only_b = std::ssize(b.tokens) - std::ssize(difference.tokens);
  return difference;
}

CurveDifference difference_in_bins(const Curve& a, const Curve& b, std::int64_t bin_tokens) {
  constexpr std::int64_t kMost = std::int64_t{1} << 60;  // keeps a bin's end below 2^63
  if (bin_tokens < 1 || bin_tokens > kMost)
    throw Error(ErrorKind::kUsage, "difference_in_bins: a bin must hold between 1 and 2^60 tokens");
  check(a);
  check(b);
  if (a.tokens.back() > kMost || b.tokens.back() > kMost)
    throw Error(ErrorKind::kInput, "curve: a token count is above 2^60");
  const OwnedCurve means_a = bin_means(a, bin_tokens), means_b = bin_means(b, bin_tokens);
  return difference_on_common_tokens({means_a.tokens, means_a.values},
                                     {means_b.tokens, means_b.values});
}

}  // namespace olmo::report
