#include "report/stats/paired_outcomes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/error.h"
#include "report/stats/bootstrap.h"
#include "report/stats/distributions.h"

namespace olmo::report {
namespace {

constexpr int kBisections = 200;  // more than enough to reach neighbouring doubles

void check(const PairedCounts& counts) {
  if (counts.both_right < 0 || counts.only_a_right < 0 || counts.only_b_right < 0 ||
      counts.both_wrong < 0)
    throw Error(ErrorKind::kInput, "paired outcomes: a count of the 2x2 table is negative");
  if (counts.total() == 0)
    throw Error(ErrorKind::kInput, "paired outcomes: at least one instance is needed, got none");
}

void check_level(double level) { require_fraction(level, "paired outcomes: the level"); }

PairedCounts swapped(PairedCounts counts) {
  std::swap(counts.only_a_right, counts.only_b_right);
  return counts;
}

/// Where `holds` turns from true (at `inner`) to false (at `outer`).
template <class Predicate>
double boundary(double inner, double outer, Predicate holds) {
  for (int i = 0; i < kBisections; ++i) {
    const double middle = inner + (outer - inner) / 2;
    if (middle == inner || middle == outer) break;
    (holds(middle) ? inner : outer) = middle;
  }
  return inner;
}

double tango_upper(const PairedCounts& counts, double alpha) {
  const double z = normal_quantile(1 - alpha);
  return boundary(accuracy_difference(counts), 1.0,
                  [&](double delta) { return tango_z(counts, delta) >= -z; });
}

double paired_upper(const PairedCounts& counts, double alpha) {
  const double tango = tango_upper(counts, alpha);
  if (counts.net() < 0) return tango;
  return std::max(tango, binomial_upper_limit(counts.net(), counts.total(), alpha));
}

/// The p-value of "the difference is at least `margin`" that paired_upper inverts.
double below_margin_p(const PairedCounts& counts, double margin) {
  const double tango = normal_cdf(tango_z(counts, margin));
  if (counts.net() < 0) return tango;
  return std::max(tango, binomial_cdf(counts.net(), counts.total(), margin));
}

void check(double d, std::int64_t n) {
  if (n < 1 || !(d >= 0 && d <= 1))
    throw Error(ErrorKind::kUsage,
                "power: n must be at least 1 and the discordant share in [0, 1], received n = " +
                    std::to_string(n) + ", d = " + std::to_string(d));
}

}  // namespace

double accuracy_difference(const PairedCounts& counts) {
  check(counts);
  return static_cast<double>(counts.net()) / static_cast<double>(counts.total());
}

double mcnemar_mid_p(const PairedCounts& counts) {
  check(counts);
  const auto fewer = std::min(counts.only_a_right, counts.only_b_right);
  const auto pairs = counts.discordant();
  if (counts.net() == 0) return 1;
  return 2 * binomial_cdf(fewer, pairs, 0.5) - binomial_pmf(fewer, pairs, 0.5);
}

double tango_z(const PairedCounts& counts, double delta) {
  check(counts);
  if (!(std::abs(delta) <= 1))
    throw Error(ErrorKind::kUsage,
                "tango_z: the difference must lie in [-1, 1], received " + std::to_string(delta));
  const auto n = static_cast<double>(counts.total());
  const auto gained = static_cast<double>(counts.only_b_right);
  const auto lost = static_cast<double>(counts.only_a_right);
  // The share lost, q, at its maximum likelihood: the root of a·q² + b·q + c in [0, 1].
  const double a = 2 * n;
  const double b = -gained - lost + (2 * n - gained + lost) * delta;
  const double c = -lost * delta * (1 - delta);
  const double root = std::sqrt(std::max(b * b - 4 * a * c, 0.0));
  // The second form does not cancel where b is positive.
  const double lost_share = b <= 0 ? (root - b) / (2 * a) : -2 * c / (root + b);
  const double variance = n * (2 * lost_share + delta * (1 - delta));
  const double distance = gained - lost - n * delta;
  if (distance == 0) return 0;
  if (!(variance > 0)) return std::copysign(std::numeric_limits<double>::infinity(), distance);
  return distance / std::sqrt(variance);
}

Interval paired_interval(const PairedCounts& counts, double level) {
  check(counts);
  check_level(level);
  const double alpha = (1 - level) / 2;
  return {-paired_upper(swapped(counts), alpha), paired_upper(counts, alpha)};
}

Equivalence paired_equivalence(const PairedCounts& counts, double margin) {
  require_fraction(margin, "equivalence: the margin");
  Equivalence result;
  result.estimate = accuracy_difference(counts);
  result.interval = paired_interval(counts, kEquivalenceLevel);
  result.margin = margin;
  result.p = std::max(below_margin_p(counts, margin), below_margin_p(swapped(counts), margin));
  result.certified = result.interval.inside(margin);
  return result;
}

Interval macro_interval(std::span<const PairedCounts> tasks, double level) {
  if (tasks.empty())
    throw Error(ErrorKind::kInput, "macro average: at least one task is needed, got none");
  double sum = 0, below = 0, above = 0;
  for (const auto& task : tasks) {
    const double difference = accuracy_difference(task);
    const Interval interval = paired_interval(task, level);
    sum += difference;
    below += (difference - interval.low) * (difference - interval.low);
    above += (interval.high - difference) * (interval.high - difference);
  }
  const auto count = static_cast<double>(tasks.size());
  return {(sum - std::sqrt(below)) / count, (sum + std::sqrt(above)) / count};
}

Equivalence macro_equivalence(std::span<const PairedCounts> tasks, double margin) {
  require_fraction(margin, "equivalence: the margin");
  Equivalence result;
  result.interval = macro_interval(tasks, kEquivalenceLevel);
  for (const auto& task : tasks)
    result.estimate += accuracy_difference(task) / static_cast<double>(tasks.size());
  result.margin = margin;
  result.certified = result.interval.inside(margin);
  // The error rate at which the interval would just reach a margin.
  constexpr double kSmallest = 1e-15, kLargest = 0.5 - 1e-9;
  result.p = 1;
  if (macro_interval(tasks, 1 - 2 * kLargest).inside(margin))
    result.p = boundary(kLargest, kSmallest,
                        [&](double p) { return macro_interval(tasks, 1 - 2 * p).inside(margin); });
  return result;
}

double paired_power(double d, std::int64_t n, double margin) {
  check(d, n);
  require_fraction(margin, "equivalence: the margin");
  const double mean = static_cast<double>(n) * d, reach = 8 * std::sqrt(mean * (1 - d)) + 12;
  const auto most = std::min(n, static_cast<std::int64_t>(mean + reach));
  double power = 0;
  for (auto pairs = std::max<std::int64_t>(0, static_cast<std::int64_t>(mean - reach));
       pairs <= most; ++pairs) {
    // Certified is what gains at most so many pairs on balance; swapped sides alike.
    const auto certified = [&](std::int64_t gained) {
      return below_margin_p({n - pairs, pairs - gained, gained, 0}, margin) < kAlpha;
    };
    std::int64_t inside = (pairs + 1) / 2, outside = pairs + 1;
    if (!certified(inside)) continue;
    while (outside - inside > 1) {
      const auto middle = inside + (outside - inside) / 2;
      (certified(middle) ? inside : outside) = middle;
    }
    power += binomial_pmf(pairs, n, d) *
             (binomial_cdf(inside, pairs, 0.5) - binomial_cdf(pairs - inside - 1, pairs, 0.5));
  }
  return power;
}

std::vector<double> macro_limits(std::span<const double> d, std::span<const std::int64_t> n) {
  constexpr std::uint64_t kTables = 2000;
  if (n.empty() || d.size() != n.size())
    throw Error(ErrorKind::kUsage, "power: one share and one count for each task are needed");
  std::vector<BinomialTable> discordant;
  for (std::size_t i = 0; i < n.size(); ++i) {
    check(d[i], n[i]);
    discordant.emplace_back(n[i], d[i]);
  }
  std::vector<double> limits;
  for (std::uint64_t table = 0; table < kTables; ++table) {
    ResampleDraws draws(0, table);
    std::vector<PairedCounts> tasks;
    for (std::size_t i = 0; i < n.size(); ++i) {
      const std::int64_t pairs = discordant[i].draw(draws.uniform());
      std::int64_t gained = 0;  // a fair coin each: the bits of random words
      for (std::int64_t left = pairs; left > 0; left -= 32) {
        const std::uint32_t bits = draws.word();
        gained += std::popcount(left < 32 ? bits >> (32 - left) : bits);
      }
      tasks.push_back({n[i] - pairs, pairs - gained, gained, 0});
    }
    const Interval interval = macro_interval(tasks, kEquivalenceLevel);
    limits.push_back(std::max(std::abs(interval.low), std::abs(interval.high)));
  }
  std::sort(limits.begin(), limits.end());
  return limits;
}

std::int64_t instances_to_certify(double d, double margin) {
  check(d, 1);
  require_fraction(margin, "power: the margin");
  const double factor = (normal_quantile(1 - kAlpha) + normal_quantile((1 + kPower) / 2)) / margin;
  const double without_discordance = std::log(kAlpha) / std::log1p(-margin);
  return static_cast<std::int64_t>(std::ceil(std::max(d * factor * factor, without_discordance)));
}

double detectable_difference(double d, std::int64_t n) {
  check(d, n);
  return (normal_quantile(1 - kAlpha / 2) + normal_quantile(kPower)) *
         std::sqrt(d / static_cast<double>(n));
}

}  // namespace olmo::report
