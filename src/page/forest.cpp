#include <algorithm>
#include <array>
#include <cmath>

#include "page/chart.h"
#include "page/html.h"

namespace olmo::page {
namespace {

std::string at(const Axis& axis, double value) {
  return exact(std::round(axis.place(value) * 10000) / 10);
}

std::string path(const char* classes, const std::string& d) {
  return std::string("<path class=\"") + classes + "\" d=\"" + d + "\"/>";
}

std::string bar(const Axis& axis, const char* classes, const Interval& interval) {
  return path(classes, "M" + at(axis, interval.low) + " 50H" + at(axis, interval.high));
}

std::string description(const ForestRow& row) {
  std::string text = row.name + ": " + row.value;
  if (row.interval95)
    text += ", 95 % interval " + signed_number(row.interval95->low) + " to " +
            signed_number(row.interval95->high);
  if (row.margin) text += ", margin " + number(*row.margin);
  return text + (row.certified ? ", certified" : ", not certified");
}

std::string plot(const Axis& axis, const ForestRow& row) {
  std::string d = path("zero", "M" + at(axis, 0) + " 0V100");
  if (row.margin) {
    d += path("margin-area", "M" + at(axis, -*row.margin) + " 0H" + at(axis, *row.margin) +
                                 "V100H" + at(axis, -*row.margin) + "Z");
    d += path("margin-mark",
              "M" + at(axis, -*row.margin) + " 15V85M" + at(axis, *row.margin) + " 15V85");
  }
  if (row.interval95) d += bar(axis, "i95", *row.interval95);
  if (row.interval90) d += bar(axis, "i90", *row.interval90);
  d += path(row.summary ? "dot dot-sum" : "dot", "M" + at(axis, row.estimate) + " 50h0");
  return "<svg viewBox=\"0 0 1000 100\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"" +
         shown(description(row)) + "\"><title>" + shown(description(row)) + "</title>" + d +
         "</svg>";
}

Axis shared_axis(std::span<const ForestRow> rows) {
  double most = 0;
  const auto reach = [&](double value) {
    if (std::isfinite(value)) most = std::max(most, std::fabs(value));
  };
  for (const ForestRow& row : rows) {
    reach(row.estimate);
    reach(row.margin.value_or(0));
    for (const auto& interval : {row.interval95, row.interval90}) {
      if (interval) {
        reach(interval->low);
        reach(interval->high);
      }
    }
  }
  const std::array<double, 2> ends = {-most, most};
  return axis_over(ends, Axis::Scale::kLinear, "");
}

}  // namespace

std::string forest(const std::string& title, const std::string& axis_label,
                   std::span<const ForestRow> rows) {
  rows = rows.first(std::min(rows.size(), kShownRows));
  const Axis axis = shared_axis(rows);
  std::string body;
  for (const ForestRow& row : rows)
    body += std::string("<div class=\"row") + (row.summary ? " sum" : "") +
            "\"><span class=\"name\">" + shown(row.name, 60) + "</span>" + plot(axis, row) +
            "<span class=\"value\">" + escape(row.value) + "</span><span class=\"remark\">" +
            (row.certified ? "<b class=\"ok\" title=\"certified\">✓</b> "
                           : "<b title=\"not certified\">○</b> ") +
            escape(row.remark) + "</span></div>\n";
  std::string ticks;
  for (const Tick& tick : axis.ticks())
    ticks += "<span style=\"left:" + exact(std::round(axis.place(tick.value) * 1000) / 10) +
             "%\">" + escape(tick.label) + "</span>";
  return "<figure class=\"forest\">\n<figcaption><b>" + escape(title) +
         "</b><span class=\"legend\"><span class=\"key\"><i class=\"k95\"></i>95 %</span>"
         "<span class=\"key\"><i class=\"k90\"></i>90 %</span><span class=\"key\">"
         "<i class=\"km\"></i>margin</span><span class=\"key\">✓ certified</span>"
         "<span class=\"key\">○ not certified</span></span></figcaption>\n" +
         body + "<div class=\"row axis\" aria-hidden=\"true\"><span class=\"ticks\">" + ticks +
         "</span></div>\n<p class=\"xl\">" + escape(axis_label) + "</p>\n</figure>\n";
}

}  // namespace olmo::page
