#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "page/chart.h"
#include "page/html.h"

namespace olmo::page {
namespace {

double warped(const Axis& axis, double value) {
  if (axis.scale == Axis::Scale::kLog) return std::log10(std::max(value, 1e-300));
  return axis.scale == Axis::Scale::kSigned ? std::asinh(value / axis.knee) : value;
}

Tick tick(const Axis& axis, double value) {
  std::string label = axis.counts ? compact(value) : number(value, 4);
  constexpr std::string_view kOneTimes = "1×10";
  if (label.compare(0, kOneTimes.size(), kOneTimes) == 0) label.erase(0, kOneTimes.size() - 2);
  return {value, label};
}

/// 1, 2 or 5 times a power of ten, so that about `parts` fit into `width`.
double nice_step(double width, int parts) {
  const double rough = width / parts;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * 0.999) return factor * power;
  }
  return 10 * power;
}

std::vector<Tick> linear_ticks(const Axis& axis) {
  std::vector<Tick> ticks;
  const double step = nice_step(axis.high - axis.low, 5);
  const double first = std::ceil(axis.low / step - 1e-9);
  for (double i = first; i * step <= axis.high + 1e-9 * step && ticks.size() < 12; ++i)
    ticks.push_back(tick(axis, i == 0 ? 0 : i * step));
  return ticks;
}

std::vector<Tick> log_ticks(const Axis& axis) {
  const int first = static_cast<int>(std::floor(std::log10(axis.low)));
  const int last = static_cast<int>(std::ceil(std::log10(axis.high)));
  const int step = std::max(1, (last - first + 5) / 6);
  std::vector<Tick> ticks;
  for (int power = first; power <= last; power += step) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor > 1 && last - first > 2) break;
      const double value = factor * std::pow(10, power);
      if (value >= axis.low * 0.999 && value <= axis.high * 1.001)
        ticks.push_back(tick(axis, value));
    }
  }
  return ticks;
}

/// 0, ±knee and powers of ten times the knee, no nearer than is readable.
std::vector<Tick> signed_ticks(const Axis& axis) {
  std::vector<Tick> ticks = {tick(axis, 0)};
  double last = axis.place(0);
  for (double value = axis.knee; value <= std::max(-axis.low, axis.high); value *= 10) {
    if (axis.place(value) - last < 0.08) continue;
    last = axis.place(value);
    if (value <= axis.high) ticks.push_back(tick(axis, value));
    if (-value >= axis.low) ticks.push_back(tick(axis, -value));
  }
  return ticks;
}

}  // namespace

double Axis::place(double value) const {
  const double from = warped(*this, low);
  const double to = warped(*this, high);
  return std::clamp((warped(*this, value) - from) / (to - from), 0.0, 1.0);
}

std::vector<Tick> Axis::ticks() const {
  auto ticks = scale == Scale::kLog      ? log_ticks(*this)
               : scale == Scale::kSigned ? signed_ticks(*this)
                                         : linear_ticks(*this);
  // Between two neighbouring steps there is none.
  const auto is_whole = [](const Tick& one) { return std::round(one.value) == one.value; };
  if (counts && std::ranges::any_of(ticks, is_whole))
    std::erase_if(ticks, [&](const Tick& one) { return !is_whole(one); });
  return ticks;
}

Axis axis_over(std::span<const double> values, Axis::Scale scale, const std::string& label,
               bool room) {
  Axis axis;
  axis.scale = scale;
  axis.label = label;
  const bool log = scale == Axis::Scale::kLog;
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const double value : values) {
    if (!std::isfinite(value) || (log && value <= 0)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (!(low <= high)) {
    low = log ? 0.1 : 0;
    high = 1;
  }
  if (log) {
    const double factor = room ? 1.3 : 1;
    axis.low = low / factor;
    axis.high = std::max(high * factor, axis.low * 1.01);
    return axis;
  }
  if (high - low <= 1e-12 * std::max(std::fabs(low), std::fabs(high))) {
    const double around = low == 0 ? 1 : 0.01 * std::fabs(low);
    low -= around;
    high += around;
  } else if (room) {
    const double edge = 0.05 * (high - low);
    low -= edge;
    high += edge;
  }
  axis.low = low;
  axis.high = high;
  return axis;
}

}  // namespace olmo::page
