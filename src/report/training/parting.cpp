#include "report/training/parting.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/text/text.h"

namespace olmo::report {
namespace {

constexpr std::size_t kFewestPartingPoints = 30;
/// Correlation of the noise where the batches are the same, and where they are not.
constexpr double kSameNoise = 0.9, kOtherNoise = 0.5;
/// After a change the noise must stay another one; a single window may be so by chance.
constexpr double kOtherNoiseToTheEnd = 0.6;
/// Of the size of the noise: what other batches differ by is 1.4 of it in the median.
constexpr double kApart = 0.7;
/// A jump is by an order, between means over so many points on either side of it …
constexpr double kJump = 10;
constexpr std::size_t kJumpWindow = 8;
/// … to a difference that rounding did not reach in any log of two vendors (1.5e-3 at one step,
/// 9e-4 in the median of eight), and half of it remains.
constexpr double kJumpLevel = 1e-3;

double median(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  const auto middle = sorted.begin() + std::ssize(sorted) / 2;
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

/// Each loss less the mean of its neighbours.
std::vector<double> noise_of(std::span<const double> losses) {
  std::vector<double> noise;
  for (std::size_t i = 1; i + 1 < losses.size(); ++i)
    noise.push_back(losses[i] - (losses[i - 1] + losses[i + 1]) / 2);
  return noise;
}

/// The noise of the batches of two curves, with sums that give any stretch's moments at once.
class BatchNoise {
 public:
  explicit BatchNoise(const PairedCurves& curves) : a_(noise_of(curves.a)), b_(noise_of(curves.b)) {
    sums_.resize(1);
    for (std::size_t i = 0; i < a_.size(); ++i) {
      const double x = a_[i], y = b_[i];
      const Sums& last = sums_.back();
      sums_.push_back({last.x + x, last.y + y, last.xx + x * x, last.yy + y * y, last.xy + x * y,
                       last.apart + (y - x) * (y - x)});
    }
  }
  [[nodiscard]] std::size_t size() const { return sums_.size() - 1; }

  /// Over [first, end); 1 where a side has no noise at all.
  [[nodiscard]] double correlation(std::size_t first, std::size_t end) const {
    const Sums &from = sums_[first], &to = sums_[end];
    const auto n = static_cast<double>(end - first);
    const double x = to.x - from.x, y = to.y - from.y;
    const double xx = to.xx - from.xx - x * x / n, yy = to.yy - from.yy - y * y / n;
    if (xx <= 0 || yy <= 0) return 1;
    return (to.xy - from.xy - x * y / n) / std::sqrt(xx * yy);
  }
  /// Whether the noises differ at most places of [first, end). A spike of one side takes the
  /// correlation away, too, and differs at a few.
  [[nodiscard]] bool most_differ(std::size_t first, std::size_t end) const {
    std::vector<double> apart, in_a, in_b;
    for (std::size_t i = first; i < end; ++i) {
      apart.push_back(std::abs(b_[i] - a_[i]));
      in_a.push_back(std::abs(a_[i]));
      in_b.push_back(std::abs(b_[i]));
    }
    return median(apart) > kApart * (median(in_a) + median(in_b)) / 2;
  }
  /// Mean square of the difference of both noises.
  [[nodiscard]] double apart(std::size_t first, std::size_t end) const {
    constexpr double kLeast = 1e-30;  // of equal bits
    return std::max(kLeast,
                    (sums_[end].apart - sums_[first].apart) / static_cast<double>(end - first));
  }

 private:
  struct Sums {
    double x = 0, y = 0, xx = 0, yy = 0, xy = 0, apart = 0;
  };
  std::vector<double> a_, b_;
  std::vector<Sums> sums_;
};

/// Long curves get long windows: a correlation that falls slowly, as rounding grows, is then never
/// high in one window and low in the next.
std::size_t window_of(std::size_t noise) {
  return std::min(std::clamp<std::size_t>(noise / 20, 20, 250), noise / 2);
}

/// Where in [first, end) the noises begin to differ: the likeliest split into two variances.
std::size_t split(const BatchNoise& noise, std::size_t first, std::size_t end) {
  constexpr std::size_t kFewest = 3;
  std::size_t best = first + kFewest;
  double most = 0;
  for (std::size_t k = first + kFewest; k + kFewest <= end; ++k) {
    const double fit = -static_cast<double>(k - first) * std::log(noise.apart(first, k)) -
                       static_cast<double>(end - k) * std::log(noise.apart(k, end));
    if (k > best && fit <= most) continue;
    most = fit;
    best = k;
  }
  return best;
}

std::optional<Parting> find_other_data(const PairedCurves& curves, const BatchNoise& noise) {
  const std::size_t n = noise.size(), window = window_of(n);
  std::optional<Parting> found;
  std::size_t place = 0;
  for (std::size_t k = window; k + window <= n; ++k) {
    const double before = noise.correlation(k - window, k);
    const double after = noise.correlation(k, k + window);
    if (before < kSameNoise || after > kOtherNoise || noise.correlation(k, n) > kOtherNoiseToTheEnd)
      continue;
    if (found && before - after <= found->before - found->after) continue;
    if (!noise.most_differ(k, k + window)) continue;
    place = k;
    found = {Parting::Cause::kOtherData, 0, before, after};
  }
  if (found) {
    // Noise k is of the point k + 1, and looks at the point k + 2.
    const std::size_t first = split(noise, place - window, place + window);
    found->position = curves.positions[first + 2];
    found->before = noise.correlation(first - std::min(first, window), first);
    found->after = noise.correlation(first, std::min(n, first + window));
  }
  if (found) return found;
  // The first descent bends both curves alike, whatever they read.
  const std::size_t begin = n / 4, middle = (begin + n) / 2;
  const double first = noise.correlation(begin, middle), second = noise.correlation(middle, n);
  if (first < kOtherNoise && second < kOtherNoise && noise.most_differ(begin, middle) &&
      noise.most_differ(middle, n))
    return Parting{Parting::Cause::kUnrelated, curves.positions.front(), first, second};
  return std::nullopt;
}

/// Where a shift is looked for: in what both have without the first quarter, as the first descent
/// bends both curves alike, whatever they read. Of long curves a part is enough.
struct Window {
  std::int64_t first = 0, last = -1;  ///< positions

  Window(const Curve& a, const Curve& b) {
    constexpr std::ptrdiff_t kMostPoints = 20'000;
    if (a.tokens.empty() || b.tokens.empty()) return;
    const std::int64_t begin = std::max(a.tokens.front(), b.tokens.front());
    const std::int64_t end = std::min(a.tokens.back(), b.tokens.back());
    if (end < begin) return;
    first = begin + (end - begin) / 4;
    last = end;
    for (const Curve* curve : {&a, &b}) {
      const auto from = std::lower_bound(curve->tokens.begin(), curve->tokens.end(), first);
      if (curve->tokens.end() - from > kMostPoints) last = std::min(last, from[kMostPoints]);
    }
  }
};

/// The noise of A's points in the window, and of those of B that are `shift` later.
BatchNoise noise_at(const Curve& a, const Curve& b, const Window& window, std::int64_t shift) {
  std::vector<double> in_a, in_b;
  const auto place = [](const Curve& curve, std::int64_t position) {
    return static_cast<std::size_t>(
        std::lower_bound(curve.tokens.begin(), curve.tokens.end(), position) -
        curve.tokens.begin());
  };
  std::size_t i = place(a, window.first), j = place(b, window.first + shift);
  while (i < a.tokens.size() && j < b.tokens.size() && a.tokens[i] <= window.last) {
    const std::int64_t in_b_now = b.tokens[j] - shift;
    if (a.tokens[i] == in_b_now) {
      in_a.push_back(a.values[i]);
      in_b.push_back(b.values[j]);
    }
    const bool next_a = a.tokens[i] <= in_b_now, next_b = in_b_now <= a.tokens[i];
    i += next_a;
    j += next_b;
  }
  return BatchNoise({{}, in_a, in_b});
}

std::optional<Parting> find_jump(const PairedCurves& curves) {
  constexpr double kLeast = 1e-12;  // of equal bits
  const std::size_t n = curves.a.size(), window = kJumpWindow;
  std::vector<double> apart(n), logs(n + 1);
  for (std::size_t i = 0; i < n; ++i) {
    apart[i] = std::abs(curves.b[i] - curves.a[i]) / std::max(std::abs(curves.a[i]), 1e-300);
    logs[i + 1] = logs[i] + std::log(std::max(apart[i], kLeast));
  }
  const std::span<const double> all(apart);
  std::optional<Parting> found;
  double best = 0;
  std::size_t place = 0;
  for (std::size_t k = window; k + window <= n; ++k) {
    const double rise = logs[k + window] - 2 * logs[k] + logs[k - window];
    if (rise < std::max(best, static_cast<double>(window))) continue;
    // A difference that swings about 0 is small for a while by chance: longer stretches agree.
    const std::size_t back = std::min(k, 8 * window), ahead = std::min(n - k, 8 * window);
    const double before =
        std::max(median(all.subspan(k - window, window)), median(all.subspan(k - back, back)));
    const double after = std::min(median(all.subspan(k, window)), median(all.subspan(k, ahead)));
    if (after < kJumpLevel || after < kJump * before) continue;
    best = rise;
    place = k;
    found = {Parting::Cause::kSuddenJump, curves.positions[k], before, after};
  }
  if (!found) return found;
  const double after = std::min(median(all.subspan(place)), median(all.last(window)));
  return after < kJump / 2 * found->before ? std::nullopt : found;
}

std::string two_digits(double value) { return formatted("%.2g", value); }

/// By which import both sides number the same steps alike.
std::string way_to_number(std::int64_t shift, const std::string& unit) {
  const std::string count = std::to_string(std::abs(shift));
  const std::string lower = shift < 0 ? "B" : "A", higher = shift < 0 ? "A" : "B";
  const std::string target = unit == "step" ? "step" : "tokens";
  return "With --map " + target + "=COLUMN+" + count + ", runs import numbers the log of " + lower +
         " as " + higher + "'s is; with COLUMN-" + count + ", that of " + higher + " as " + lower +
         "'s.";
}

}  // namespace

const char* to_string(Parting::Cause cause) {
  if (cause == Parting::Cause::kOtherData) return "other data";
  if (cause == Parting::Cause::kShifted) return "shifted";
  return cause == Parting::Cause::kUnrelated ? "unrelated" : "sudden jump";
}

std::string sentence_of(const Parting& parting, const std::string& unit) {
  const std::string where = unit + " " + std::to_string(parting.position);
  const std::string values =
      two_digits(parting.before) + " before, " + two_digits(parting.after) + " after";
  switch (parting.cause) {
    case Parting::Cause::kOtherData:
      return "From " + where +
             " on the sides read other data: the losses' noise from batch to batch no longer "
             "agrees (correlation " +
             values + ").";
    case Parting::Cause::kSuddenJump:
      return "At " + where +
             " the losses jump apart, and stay so: other code or other data, as rounding grows "
             "step by step (relative difference " +
             values + ").";
    case Parting::Cause::kShifted:
      return "The sides number the same " + unit +
             "s differently: the losses' noise from batch to batch agrees where " + unit +
             " N of A is set against " + unit + " N " + (parting.shift < 0 ? "- " : "+ ") +
             std::to_string(std::abs(parting.shift)) + " of B (correlation " +
             two_digits(parting.after) + ", at equal numbers " + two_digits(parting.before) +
             "). " + way_to_number(parting.shift, unit);
    case Parting::Cause::kUnrelated:
      break;
  }
  return "The losses' noise from batch to batch does not agree from " + where +
         " on, so the sides did not read the same data in the same order (correlation " +
         two_digits(parting.before) + ", then " + two_digits(parting.after) + ").";
}

std::string cap_of(const Parting& parting, const std::string& unit) {
  const std::string where = unit + " " + std::to_string(parting.position);
  switch (parting.cause) {
    case Parting::Cause::kOtherData:
      return "the losses tell of other data from " + where + " on";
    case Parting::Cause::kSuddenJump:
      return "the losses jump apart at " + where;
    case Parting::Cause::kShifted:
      return "the sides number the same " + unit + "s differently";
    case Parting::Cause::kUnrelated:
      break;
  }
  return "the losses tell of other data, or of another order";
}

std::vector<Parting> find_partings(const PairedCurves& curves) {
  std::vector<Parting> found;
  if (curves.a.size() < kFewestPartingPoints) return found;
  const BatchNoise noise(curves);
  if (const auto data = find_other_data(curves, noise)) found.push_back(*data);
  if (const auto jump = find_jump(curves)) {
    // Other data let the losses jump, too: one event is told once.
    const auto at = [&](std::int64_t position) {
      return std::lower_bound(curves.positions.begin(), curves.positions.end(), position) -
             curves.positions.begin();
    };
    const auto apart =
        found.empty() ? std::ptrdiff_t(0) : at(jump->position) - at(found[0].position);
    if (found.empty() || std::abs(apart) > 2 * static_cast<std::ptrdiff_t>(kJumpWindow))
      found.push_back(*jump);
  }
  std::sort(found.begin(), found.end(),
            [](const Parting& x, const Parting& y) { return x.position < y.position; });
  return found;
}

std::optional<Parting> find_shift(const Curve& a, const Curve& b, std::int64_t unit) {
  constexpr std::size_t kFewestNoises = 20;
  const Window window(a, b);
  const auto agreement = [&](std::int64_t shift) -> std::optional<double> {
    const BatchNoise noise = noise_at(a, b, window, shift);
    if (noise.size() < kFewestNoises) return std::nullopt;
    const double found = noise.correlation(0, noise.size());
    // Spikes that lie so far apart agree, too, and nothing else does.
    if (shift != 0 && found >= kSameNoise && noise.most_differ(0, noise.size())) return 0;
    return found;
  };
  const double here = agreement(0).value_or(0);
  if (here > kOtherNoise) return std::nullopt;
  Parting found{Parting::Cause::kShifted, 0, here, 0};
  for (std::int64_t steps = 1; steps <= kFurthestShift; ++steps) {
    for (const std::int64_t shift : {steps * unit, -steps * unit}) {
      const double there = agreement(shift).value_or(0);
      if (there <= found.after) continue;
      found.after = there;
      found.shift = shift;
    }
  }
  if (found.after < kSameNoise) return std::nullopt;
  found.position = std::max(a.tokens.front(), b.tokens.front());
  return found;
}

}  // namespace olmo::report
