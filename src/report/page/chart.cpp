#include "report/page/chart.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "report/page/html.h"

namespace olmo::report::page {
namespace {

/// Units of a chart's width and height.
constexpr double kUnits = 1000;

std::string coordinate(double share) {
  const auto tenths = std::lround(share * kUnits * 10);
  std::string text = std::to_string(tenths / 10);
  if (tenths % 10 != 0) text += "." + std::to_string(tenths % 10);
  return text;
}

std::string path(const char* classes, const std::string& d, const std::string& title = {}) {
  const std::string open = std::string("<path class=\"") + classes + "\" d=\"" + d + "\"";
  return title.empty() ? open + "/>\n" : open + "><title>" + shown(title) + "</title></path>\n";
}

std::string rectangle(const char* classes, double left, double right, double top, double bottom) {
  return path(classes, "M" + coordinate(left) + " " + coordinate(top) + "H" + coordinate(right) +
                           "V" + coordinate(bottom) + "H" + coordinate(left) + "Z");
}

std::string percent_at(double share) { return exact(std::round(share * 10000) / 100) + "%"; }

const char* scale_name(Axis::Scale scale) {
  if (scale == Axis::Scale::kLog) return "log";
  return scale == Axis::Scale::kSigned ? "signed" : "linear";
}

std::string data_of(const char* name, const Axis& axis) {
  return std::string(" data-") + name + "=\"" + scale_name(axis.scale) + "," + exact(axis.low) +
         "," + exact(axis.high) + "," + exact(axis.knee) + "\"";
}

/// The extremes of one column, in their order.
class ColumnExtremes {
 public:
  explicit ColumnExtremes(std::vector<Point>& out) : out_(out) {}

  void add(Point point) {
    if (!std::isfinite(point.y)) {
      gap_ = true;
      return;
    }
    if (!filled_) least_ = most_ = point;
    if (point.y < least_.y) least_ = point;
    if (point.y > most_.y) most_ = point;
    filled_ = true;
  }
  void flush() {
    if (gap_) out_.push_back({0, std::numeric_limits<double>::quiet_NaN()});
    if (filled_) {
      const bool falls = most_.x < least_.x;
      out_.push_back(falls ? most_ : least_);
      if (most_.x != least_.x) out_.push_back(falls ? least_ : most_);
    }
    gap_ = filled_ = false;
  }

 private:
  std::vector<Point>& out_;
  Point least_, most_;
  bool filled_ = false, gap_ = false;
};

}  // namespace

std::vector<Point> thinned(std::span<const std::int64_t> x, std::span<const double> y,
                           const Axis& axis) {
  std::vector<Point> points;
  ColumnExtremes extremes(points);
  int column = -1;
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    const auto at = static_cast<double>(x[i]);
    const int now = static_cast<int>(axis.place(at) * (kColumns - 1));
    if (now != column) extremes.flush();
    column = now;
    extremes.add({at, y[i]});
  }
  extremes.flush();
  return points;
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

void Chart::line(std::span<const Point> points, const char* classes, const std::string& name) {
  std::string d;
  bool broken = true;
  bool alone = false;
  for (const Point& point : points) {
    if (!std::isfinite(point.y)) {
      broken = true;
      continue;
    }
    if (broken && alone) d += "h0";
    d += (broken ? "M" : "L") + coordinate(x_.place(point.x)) + " " +
         coordinate(1 - y_.place(point.y));
    alone = broken;
    broken = false;
  }
  if (d.empty()) return;
  if (alone) d += "h0";
  ++curves_;
  lines_ += std::string("<g data-name=\"") + escape(name) + "\">" + path(classes, d) + "</g>";
  legend(classes, name, "M1 5H27");
}

void Chart::band(double low, double high, const char* classes, const std::string& name) {
  behind_ += rectangle(classes, 0, 1, 1 - y_.place(high), 1 - y_.place(low));
  legend(classes, name, "M1 0H27V10H1Z");
}

void Chart::stretch(double from, double to, const char* classes, const std::string& name) {
  behind_ += rectangle(classes, x_.place(from), x_.place(to), 0, 1);
  legend(classes, name, "M1 0H27V10H1Z");
}

void Chart::rule(double y, const char* classes) {
  behind_ += path(classes, "M0 " + coordinate(1 - y_.place(y)) + "H1000");
}

void Chart::mark(double x, const char* classes, const std::string& text) {
  behind_ += path(classes, "M" + coordinate(x_.place(x)) + " 0V1000", text);
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
  return "<figure class=\"chart\">\n<figcaption><b>" + escape(title_) +
         "</b><span class=\"unit\">" + escape(y_.label) + "</span><span class=\"legend\">" +
         legend_ +
         "</span></figcaption>\n<div class=\"plot\"><div class=\"ys\" aria-hidden=\"true\">" +
         left +
         "</div>\n<svg viewBox=\"0 0 1000 1000\" preserveAspectRatio=\"none\" role=\"img\" "
         "aria-label=\"" +
         escape(title_ + ". " + description_) + "\"" + data_of("x", x_) + data_of("y", y_) +
         ">\n<title>" + escape(title_) + "</title>\n" + path("grid", grid) + behind_ + lines_ +
         "</svg>\n<div class=\"xs\" aria-hidden=\"true\">" + below +
         "</div></div>\n<p class=\"xl\">" + escape(x_.label) + "</p>\n</figure>\n";
}

}  // namespace olmo::report::page
