#include "monitor/run_curves.h"

#include <limits>

namespace olmo::monitor {
namespace {

/// More than the dots that a wide terminal has in a row.
constexpr std::size_t kBins = 1024;
constexpr std::size_t kPoints = 400;

store::Quantities drawn() {
  store::Quantities quantities;
  for (const Drawn& each : kDrawn) quantities.columns.emplace_back(each.column);
  return quantities;
}

/// Of the mean of neighbouring bins that lie within first..last.
struct Mean {
  double mean = 0;
  std::int64_t values = 0, rows = 0;
};

}  // namespace

std::vector<page::Bin> chart_bins(std::span<const store::SeriesBin> bins, std::size_t which) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  std::vector<page::Bin> drawn;
  bool broken = false;
  for (const auto& bin : bins) {
    const store::SeriesSpread& spread = bin.of[which];
    const double x = (static_cast<double>(bin.first) + static_cast<double>(bin.last)) / 2;
    broken = broken || spread.values < bin.rows;
    if (which == 0 && spread.values < bin.rows)
      drawn.push_back({.x = x, .low = kNone, .mean = kNone, .high = kNone, .broken = false});
    if (spread.values == 0) continue;
    drawn.push_back({.x = x,
                     .low = spread.low,
                     .mean = spread.mean,
                     .high = spread.high,
                     .broken = broken && !drawn.empty()});
    broken = spread.values < bin.rows;
  }
  return drawn;
}

std::vector<page::Bin> difference(const store::SeriesBins& a, const store::SeriesBins& b,
                                  std::size_t which) {
  // Borders of wide bins are borders of narrow ones, too: those within a wide one are put together.
  const bool a_is_wide = a.width() >= b.width();
  const auto& wide = a_is_wide ? a.bins() : b.bins();
  const auto& narrow = a_is_wide ? b.bins() : a.bins();
  std::vector<page::Bin> differences;
  auto next = narrow.begin();
  for (const auto& bin : wide) {
    Mean other;
    while (next != narrow.end() && next->last < bin.first) ++next;
    for (; next != narrow.end() && next->last <= bin.last; ++next) {
      const auto& spread = next->of[which];
      other.rows += next->rows;
      if (spread.values == 0) continue;
      other.values += spread.values;
      other.mean += (spread.mean - other.mean) * static_cast<double>(spread.values) /
                    static_cast<double>(other.values);
    }
    const auto& spread = bin.of[which];
    if (other.rows != bin.rows || spread.values == 0 || other.values == 0) continue;
    const double value = a_is_wide ? other.mean - spread.mean : spread.mean - other.mean;
    differences.push_back(
        {.x = (static_cast<double>(bin.first) + static_cast<double>(bin.last)) / 2,
         .low = value,
         .mean = value,
         .high = value,
         .broken = false});
  }
  return differences;
}

RunCurves::RunCurves() : bins_(drawn(), kBins) {}

void RunCurves::follow(const store::RecordDatabase& records, const store::RunLine& line,
                       std::size_t rows) {
  whole_ = bins_.follow(records, line, rows);
  if (whole_)
    points_.reset();
  else if (!points_)
    points_ = store::pick_points(records, line, bins_.quantities(), kPoints);
}

std::vector<page::Bin> RunCurves::curve(std::size_t which) const {
  return points_ ? page::bins_of(page::points_of(points_->step, points_->values[which]))
                 : chart_bins(bins_.bins(), which);
}

}  // namespace olmo::monitor
