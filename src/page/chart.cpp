#include "page/chart.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "page/html.h"

namespace olmo::page {
namespace {

/// Units of a chart's width and height.
constexpr double kUnits = 1000;

std::string coordinate(double share) {
  const auto tenths = std::lround(share * kUnits * 10);
  std::string text = std::to_string(tenths / 10);
  if (tenths % 10 != 0) text += "." + std::to_string(tenths % 10);
  return text;
}

std::string path(const std::string& classes, const std::string& d, const std::string& more = {}) {
  return "<path class=\"" + classes + "\" d=\"" + d + "\"" + more;
}

/// A point without a neighbour, as a dash that no end of a line and no pattern of dashes hides.
constexpr char kAlone[] = "m-3 0h6";

std::string percent_at(double share) { return exact(std::round(share * 10000) / 100) + "%"; }

const char* scale_name(Axis::Scale scale) {
  if (scale == Axis::Scale::kLog) return "log";
  return scale == Axis::Scale::kSigned ? "signed" : "linear";
}

std::string data_of(const char* name, const Axis& axis) {
  return std::string(" data-") + name + "=\"" + scale_name(axis.scale) + "," + exact(axis.low) +
         "," + exact(axis.high) + "," + exact(axis.knee) + "," + (axis.counts ? "1" : "0") + "," +
         escape(axis.label) + "\"";
}

/// x of each bin after the one before, its mean and, where they are not all equal, its extremes; a
/// broken line as an empty one.
std::string values_of(std::span<const Bin> bins) {
  std::string text;
  double before = 0;
  for (const Bin& bin : bins) {
    if (bin.broken) text += ";";
    text += exact(bin.x - before) + "," + short_number(bin.mean);
    if (bin.low < bin.high) text += "," + short_number(bin.low) + "," + short_number(bin.high);
    text += ";";
    before = bin.x;
  }
  if (!text.empty()) text.pop_back();
  return text;
}

/// Without the points that lie on the line between their neighbours.
std::string knots_of(std::span<const Point> points) {
  std::string text;
  Point last;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Point& now = points[i];
    if (i > 0 && i + 1 < points.size()) {
      const Point& next = points[i + 1];
      const double between = last.y + (next.y - last.y) * (now.x - last.x) / (next.x - last.x);
      if (std::fabs(between - now.y) < 0.01) continue;
    }
    text += (text.empty() ? "" : ";") + exact(now.x) + "," + exact(now.y);
    last = now;
  }
  return text;
}

/// Sums of the values before each, so that any mean is one subtraction.
class MovingMean {
 public:
  explicit MovingMean(std::span<const double> values) : values_(values), sums_(values.size() + 1) {
    for (std::size_t i = 0; i < values.size(); ++i)
      sums_[i + 1] = sums_[i] + (std::isfinite(values[i]) ? values[i] : 0);
    gaps_.resize(values.size() + 1);
    for (std::size_t i = 0; i < values.size(); ++i)
      gaps_[i + 1] = gaps_[i] + (std::isfinite(values[i]) ? 0 : 1);
  }
  [[nodiscard]] double at(std::size_t i) const {
    const std::size_t n = values_.size();
    const std::size_t half = std::min({n / 200, i / 10, n - 1 - i});
    const std::size_t from = i - half, to = i + half + 1;
    const std::size_t finite = to - from - (gaps_[to] - gaps_[from]);
    return half == 0 ? values_[i] : (sums_[to] - sums_[from]) / static_cast<double>(finite);
  }

 private:
  std::span<const double> values_;
  std::vector<double> sums_;
  std::vector<std::size_t> gaps_;
};

constexpr std::size_t kBinsOfRun = 500, kFinestAtStart = 64;

}  // namespace

std::vector<Bin> binned(std::span<const std::int64_t> x, std::span<const double> y) {
  const std::size_t n = std::min(x.size(), y.size());
  const MovingMean mean(y.first(n));
  std::vector<Bin> bins;
  bool broken = true;
  for (std::size_t i = 0; i < n;) {
    const std::size_t width =
        std::max<std::size_t>(1, std::min(i / kFinestAtStart, n / kBinsOfRun));
    const std::size_t end = std::min(n, i + width);
    Bin bin;
    std::vector<std::size_t> finite;
    for (; i < end; ++i) {
      if (!std::isfinite(y[i])) {
        broken = true;
        continue;
      }
      bin.low = finite.empty() ? y[i] : std::min(bin.low, y[i]);
      bin.high = finite.empty() ? y[i] : std::max(bin.high, y[i]);
      finite.push_back(i);
    }
    if (finite.empty()) continue;
    const std::size_t middle = finite[finite.size() / 2];
    bin.x = static_cast<double>(x[middle]);
    bin.mean = mean.at(middle);
    bin.broken = broken && !bins.empty();
    broken = false;
    bins.push_back(bin);
  }
  return bins;
}

std::vector<Bin> bins_of(std::span<const Point> points) {
  std::vector<Bin> bins;
  bool broken = false;
  for (const Point& point : points) {
    if (std::isfinite(point.x) && std::isfinite(point.y))
      bins.push_back({point.x, point.y, point.y, point.y, std::exchange(broken, false)});
    else
      broken = !bins.empty();
  }
  return bins;
}

std::string curve_look(std::size_t colour, std::size_t dashes) {
  return "r" + std::to_string(colour) + (dashes == 0 ? "" : " d" + std::to_string(dashes));
}

Chart::Chart(std::string title, std::string description, Axis x, Axis y)
    : title_(std::move(title)),
      description_(std::move(description)),
      x_(std::move(x)),
      y_(std::move(y)) {}

void Chart::legend(const char* classes, const std::string& name, const char* shape) {
  if (name.empty()) return;
  legend_ += std::string(
                 "<span class=\"key\"><svg viewBox=\"0 0 28 10\" width=\"28\" height=\"10\" "
                 "aria-hidden=\"true\"><path class=\"") +
             classes + "\" d=\"" + shape + "\"/></svg>" + shown(name, 80) + "</span>";
}

void Chart::curve(std::span<const Bin> bins, const Look& look, std::span<const Point> steps,
                  Spread spread) {
  if (bins.empty()) return;
  std::string line, outline, back;
  const bool bars = spread == Spread::kBars;
  bool wide = false;
  for (std::size_t i = 0; i < bins.size(); ++i) {
    const Bin& bin = bins[i];
    const bool starts = i == 0 || bin.broken;
    const bool alone = starts && (i + 1 == bins.size() || bins[i + 1].broken);
    const auto at = [&](double y) {
      return coordinate(x_.place(bin.x)) + " " + coordinate(1 - y_.place(y));
    };
    line += (starts ? "M" : "L") + at(bin.mean) + (alone ? kAlone : "");
    wide = wide || bin.low < bin.high;
    if (bars) {
      outline += "M" + at(bin.low) + "L" + at(bin.high);
      continue;
    }
    if (starts) outline += std::exchange(back, "") + (i == 0 ? "" : "Z");
    outline += (starts ? "M" : "L") + at(bin.high);
    back.insert(0, "L" + at(bin.low));
  }
  ++curves_;
  lines_ += "<g data-name=\"" + escape(look.name) + "\"" +
            (look.key.empty() ? "" : " data-key=\"" + escape(look.key) + "\"") + " data-v=\"" +
            values_of(bins) + "\"" +
            (steps.empty() ? "" : " data-steps=\"" + knots_of(steps) + "\"") + ">";
  if (wide)
    lines_ += path(std::string(bars ? "bars " : "area ") + look.classes,
                   bars ? outline : outline + back + "Z") +
              "/>";
  lines_ += path(look.classes, line) + "/></g>\n";
  if (look.key.empty()) legend(look.classes, look.name, "M1 5H27");
}

void Chart::line(std::span<const Point> points, const Look& look) {
  curve(bins_of(points), look, {});
}

void Chart::area(std::optional<Interval> x, std::optional<Interval> y, const char* classes,
                 const std::string& title) {
  const auto ends = [](const std::optional<Interval>& range) {
    return range ? exact(range->low) + "," + exact(range->high) : ",";
  };
  const double left = x ? x_.place(x->low) : 0, right = x ? x_.place(x->high) : 1;
  const double bottom = y ? 1 - y_.place(y->low) : 1, top = y ? 1 - y_.place(y->high) : 0;
  const std::string d = "M" + coordinate(left) + " " + coordinate(top) + "H" + coordinate(right) +
                        "V" + coordinate(bottom) + "H" + coordinate(left) + "Z";
  const std::string data = " data-r=\"" + ends(x) + "," + ends(y) + "\"";
  behind_ += path(classes, d, data) +
             (title.empty() ? "/>\n" : "><title>" + shown(title) + "</title></path>\n");
}

void Chart::band(double low, double high, const char* classes, const std::string& name) {
  area({}, Interval{low, high}, classes);
  legend(classes, name, "M1 0H27V10H1Z");
}

void Chart::stretch(double from, double to, const char* classes, const std::string& name) {
  area(Interval{from, to}, {}, classes);
  legend(classes, name, "M1 0H27V10H1Z");
}

void Chart::rule(double y, const char* classes) { area({}, Interval{y, y}, classes); }

void Chart::mark(double x, const char* classes, const std::string& text) {
  area(Interval{x, x}, {}, classes, text);
}

std::string Chart::html() const {
  std::string grid, left, below;
  for (const Tick& tick : y_.ticks()) {
    grid += "M0 " + coordinate(1 - y_.place(tick.value)) + "H1000";
    left += "<span style=\"top:" + percent_at(1 - y_.place(tick.value)) + "\">" +
            escape(tick.label) + "</span>";
  }
  for (const Tick& tick : x_.ticks()) {
    const double at = x_.place(tick.value);
    grid += "M" + coordinate(at) + " 0V1000";
    const char* edge = at < 0.04 ? " class=\"first\"" : at > 0.96 ? " class=\"last\"" : "";
    below += std::string("<span") + edge + " style=\"left:" + percent_at(at) + "\">" +
             escape(tick.label) + "</span>";
  }
  return "<figure class=\"chart\"" +
         (source_.empty() ? "" : " data-source=\"" + escape(source_) + "\"") +
         ">\n<figcaption><b>" + escape(title_) + "</b><span class=\"unit\">" + escape(y_.label) +
         "</span><span class=\"legend\">" + legend_ +
         "</span></figcaption>\n<div class=\"plot\"><div class=\"ys\" aria-hidden=\"true\">" +
         left +
         "</div>\n<svg viewBox=\"0 0 1000 1000\" preserveAspectRatio=\"none\" role=\"img\" "
         "aria-label=\"" +
         escape(title_ + ". " + description_) + "\"" + data_of("x", x_) + data_of("y", y_) +
         ">\n<title>" + escape(title_) + "</title>\n" + path("grid", grid) + "/>\n" + behind_ +
         lines_ + "</svg>\n<div class=\"xs\" aria-hidden=\"true\">" + below +
         "</div></div>\n<p class=\"xl\">" + escape(x_.label) + "</p>\n</figure>\n";
}

}  // namespace olmo::page
