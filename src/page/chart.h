// Charts as inline SVG that fills its width: lines are stretched, texts are not. Each path carries
// its values too, so that the page's script can draw it again on another axis.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/interval.h"

namespace olmo::page {

struct Tick {
  double value = 0;
  std::string label;
};

/// From a value to its place. Logarithmic axes take only positive values; a signed one is linear
/// within ±knee and logarithmic beyond.
struct Axis {
  enum class Scale { kLinear, kLog, kSigned };

  Scale scale = Scale::kLinear;
  double low = 0, high = 1, knee = 1;
  std::string label;
  bool counts = false;  ///< labels as 250k, 1.5M

  /// 0 at low, 1 at high.
  [[nodiscard]] double place(double value) const;
  [[nodiscard]] std::vector<Tick> ticks() const;
};

/// An axis that holds `values` that are finite (and positive, if logarithmic), 0 to 1 if there is
/// none, with a little room at both ends where `room`.
Axis axis_over(std::span<const double> values, Axis::Scale scale, const std::string& label,
               bool room = true);

struct Point {
  double x = 0, y = 0;  ///< one that is not finite: the line is broken
};

/// Of two columns of equal length.
template <class X>
std::vector<Point> points_of(const std::vector<X>& x, const std::vector<double>& y) {
  std::vector<Point> points;
  for (std::size_t i = 0; i < x.size(); ++i) points.push_back({static_cast<double>(x[i]), y[i]});
  return points;
}

/// Neighbouring values of a curve, drawn as one.
struct Bin {
  double x = 0;
  double low = 0, mean = 0, high = 0;  ///< `mean` is smoothed, the others are extremes
  bool broken = false;                 ///< a value before it is not finite: the line is broken
};

/// A curve in at most 1,100 bins: a value a bin at the start, as a logarithmic axis shows it, and
/// one for 1/500 of the values from there on. `mean` is a moving average over 1 % of the values
/// (and at most a fifth of those before it, so that a steep start is not flattened).
std::vector<Bin> binned(std::span<const std::int64_t> x, std::span<const double> y);

/// A bin for each point whose numbers are finite.
std::vector<Bin> bins_of(std::span<const Point> points);

/// How a curve is drawn, and what it is called.
struct Look {
  const char* classes;    ///< choose colour and dashes
  std::string name = {};  ///< in the readout and, if it is not empty, in the legend
  std::string key = {};   ///< of what the script of a page brings points for; not in the legend
};

/// Colours of curves of many runs, told apart with every kind of colour vision, and their dashes.
inline constexpr std::size_t kCurveColours = 7, kCurveDashes = 5;
/// Classes of the curve with such a colour and dashes, both counted from 0.
std::string curve_look(std::size_t colour, std::size_t dashes);

/// How the range of a bin is drawn: a band of raw values, or the bar of an interval.
enum class Spread { kBand, kBars };

class Chart {
 public:
  /// `description` is for those who cannot see it. `unit` follows a value in the readout.
  Chart(std::string title, std::string description, Axis x, Axis y);

  [[nodiscard]] const Axis& x() const { return x_; }

  /// What the chart is of, for the script of a page that brings further points (page/browser/curves.js).
  void set_source(std::string source) { source_ = std::move(source); }

  /// `steps` holds the step at some x, ascending, for the readout and the other axis; between two
  /// it is interpolated.
  void curve(std::span<const Bin> bins, const Look& look, std::span<const Point> steps,
             Spread spread = Spread::kBand);
  void line(std::span<const Point> points, const Look& look);
  /// A horizontal band, or one that spans all values from x = `from` on.
  void band(double low, double high, const char* classes, const std::string& name);
  void stretch(double from, double to, const char* classes, const std::string& name);
  void rule(double y, const char* classes);
  /// A vertical line with a text for the pointer.
  void mark(double x, const char* classes, const std::string& text);
  [[nodiscard]] bool empty() const { return curves_ == 0; }
  [[nodiscard]] std::string html() const;

 private:
  void legend(const char* classes, const std::string& name, const char* shape);
  /// A rectangle from x to x and y to y; an absent end is the plot's.
  void area(std::optional<Interval> x, std::optional<Interval> y, const char* classes,
            const std::string& title = {});

  std::string title_, description_, source_;
  Axis x_, y_;
  std::string behind_, lines_, legend_;
  int curves_ = 0;
};

/// One line of a forest plot. Numbers are in the unit of the axis.
struct ForestRow {
  std::string name;
  double estimate = 0;
  std::optional<Interval> interval95, interval90;
  std::optional<double> margin;
  bool certified = false;
  bool summary = false;  ///< an average over the others
  std::string value;     ///< the estimate as text
  std::string remark;    ///< n, flips
};

std::string forest(const std::string& title, const std::string& axis_label,
                   std::span<const ForestRow> rows);

}  // namespace olmo::page
