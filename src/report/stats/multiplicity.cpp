#include "report/stats/multiplicity.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "core/error.h"

namespace olmo::report {
namespace {

void check(std::span<const double> p) {
  if (p.empty()) throw Error(ErrorKind::kInput, "multiplicity: at least one p-value is needed");
  for (const double value : p) {
    if (!(value >= 0 && value <= 1))
      throw Error(ErrorKind::kInput,
                  "multiplicity: a p-value must lie in [0, 1], is " + std::to_string(value));
  }
}

}  // namespace

std::vector<double> holm_adjusted(std::span<const double> p) {
  check(p);
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t i, std::size_t j) { return p[i] < p[j]; });
  std::vector<double> adjusted(p.size());
  double running = 0;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const auto left = static_cast<double>(order.size() - rank);
    running = std::max(running, std::min(1.0, left * p[order[rank]]));
    adjusted[order[rank]] = running;
  }
  return adjusted;
}

double intersection_union_p(std::span<const double> p) {
  check(p);
  return *std::max_element(p.begin(), p.end());
}

}  // namespace olmo::report
