// Curves of a run for people who look: few points of many rows, read while the run may go on.
//
// A row of `steps` takes some 300 bytes, so reading a run of a million steps takes half a second.
// What is to show at once is therefore picked: single rows, each found by its key. Bins, which know
// the extremes of what lies between, are made from all rows, in portions; they are kept by the
// caller, so that a run that goes on costs its new rows only.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "store/runs/run_line.h"

namespace olmo::store {

/// What curves are of: columns of `steps`, or one metric (table metrics) and no column. A run of
/// another trainer has no values in columns that its table `imported_steps` lacks.
struct Quantities {
  std::vector<std::string> columns = {};
  std::string metric = {};

  [[nodiscard]] std::size_t size() const { return metric.empty() ? columns.size() : 1; }
};

/// The names of a run's metrics, ascending. Reads all its rows of that table.
std::vector<std::string> metric_names(const RecordDatabase& records, const std::string& run_id);

/// Rows as they were recorded, ascending in step; a value that is not there is NaN.
struct SeriesPoints {
  std::vector<std::int64_t> step;
  std::vector<std::vector<double>> values;  ///< of each quantity, as long as `step`
};

/// Steps of a curve to be shown; none beyond the run's are found.
struct StepRange {
  std::int64_t first = std::numeric_limits<std::int64_t>::min();
  std::int64_t last = std::numeric_limits<std::int64_t>::max();
};

// All of these throw Error(kUsage) for a column of `steps` that is not a number, and for none of
// it.

/// At most `most` (3 at least) rows of the range: its first, its last, and others at even
/// distances; a few more at the start, which a logarithmic axis shows. Costs a lookup each.
SeriesPoints pick_points(const RecordDatabase& records, const RunLine& line,
                         const Quantities& quantities, std::size_t most, StepRange range = {});

/// The rows after step `after`, at most `most`: what has come since.
SeriesPoints points_after(const RecordDatabase& records, const RunLine& line,
                          const Quantities& quantities, std::int64_t after, std::size_t most);

/// Of the finite values of a bin; all NaN if there is none.
struct SeriesSpread {
  double first = std::numeric_limits<double>::quiet_NaN();
  double low = first, mean = first, high = first, last = first;
  std::int64_t values = 0;
};

/// The values of neighbouring steps.
struct SeriesBin {
  std::int64_t first = 0, last = 0;  ///< the outermost steps that have a row
  std::int64_t rows = 0;
  std::vector<SeriesSpread> of;  ///< of each quantity
};

/// Bins of a curve that grows. Their borders are multiples of powers of two, so that those of two
/// runs can be compared: bins of equal width hold the same steps. They are narrow at the start, as
/// a logarithmic axis shows it, and of width() from some step on.
class SeriesBins {
 public:
  /// At most `most` bins, of at least 64, of the steps of `range`.
  SeriesBins(Quantities quantities, std::size_t most, StepRange range = {});

  /// Reads on along the line, which may have grown or been replaced from some step on since the
  /// call before: at most `rows` rows. True once nothing is left to read. No transaction lasts
  /// longer than some hundredths of a second, so that a writer need not wait.
  bool follow(const RecordDatabase& records, const RunLine& line,
              std::size_t rows = std::numeric_limits<std::size_t>::max());

  [[nodiscard]] const std::vector<SeriesBin>& bins() const { return bins_; }
  [[nodiscard]] const Quantities& quantities() const { return quantities_; }
  [[nodiscard]] std::int64_t width() const { return width_; }
  /// The last step that was read; the lowest number there is: none.
  [[nodiscard]] std::int64_t read_to() const { return read_to_; }

 private:
  void forget_after(std::int64_t step);
  void add(std::int64_t step, std::span<const double> values);
  void widen();
  [[nodiscard]] std::int64_t bin_of(std::int64_t step) const;

  Quantities quantities_;
  std::size_t most_;
  StepRange range_;
  std::int64_t per_octave_;  ///< bins between a step and its double, where they are narrow
  std::int64_t width_ = 1;
  std::vector<SeriesBin> bins_;
  RunLine line_;  ///< that was followed so far
  std::int64_t read_to_ = std::numeric_limits<std::int64_t>::min();
};

}  // namespace olmo::store
