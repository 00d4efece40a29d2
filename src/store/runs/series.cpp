#include "store/runs/series.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/error.h"
#include "core/text/text.h"
#include "store/runs/run_tables.h"

namespace olmo::store {
namespace {

constexpr auto kLowest = std::numeric_limits<std::int64_t>::min();
constexpr auto kAll = std::numeric_limits<std::size_t>::max();
/// Rows of a transaction: some hundredths of a second.
constexpr std::size_t kRowsAtOnce = 50'000;

/// What a step has a number of.
std::vector<std::string> quantities_of_steps() {
  std::vector<std::string> names;
  for (const auto& column : kStepColumns)
    if (column.is_number) names.emplace_back(column.name);
  std::erase(names, "attempt");
  std::erase(names, "step");
  return names;
}

std::string checked_column(const RecordDatabase& records, const std::string& name) {
  const auto known = quantities_of_steps();
  if (std::ranges::find(known, name) != known.end()) return name;
  throw Error(ErrorKind::kUsage, records.path().string() + ": steps have no number '" + name +
                                     "' (they have " + joined(known) + ")");
}

/// How a column of a table is read from a file of this schema; NULL where it is not there.
template <class Record>
std::string expression(const RecordDatabase& records, std::span<const Column<Record>> columns,
                       const std::string& name) {
  for (const auto& column : columns)
    if (column.name == name) return name_in(records, column);
  return "NULL";
}

/// The rows of a run's line that hold some quantities, in the order of their steps.
class LineRows {
 public:
  LineRows(const RecordDatabase& records, const RunLine& line, const Quantities& quantities)
      : records_(records), line_(line), quantities_(quantities), values_(quantities.size()) {
    OLMO_CHECK(quantities.metric.empty() || quantities.columns.empty());
    const bool metric = !quantities.metric.empty();
    std::string columns;
    const char* table = metric ? "metrics" : line.imported ? "imported_steps" : "steps";
    if (metric) {
      columns = ", value";
    } else if (line.imported) {
      const std::span<const Column<ImportedStepRecord>> known = kImportedStepColumns;
      step_ = expression(records, known, "position");
      for (const auto& name : quantities.columns)
        columns += ", " + expression(records, known,
                                     checked_column(records, name) == "loss" ? "ce_loss" : name);
    } else {
      for (const auto& name : quantities.columns) columns += ", " + checked_column(records, name);
    }
    // A metric of an imported run lies in any of its attempts, which are its files.
    const bool by_attempt = !line.imported;
    const std::string sql = "SELECT " + step_ + columns + " FROM " + table +
                            " WHERE run_id = ?1 AND " +
                            (by_attempt ? "attempt = ?2 AND " : "?2 IS NOT NULL AND ") + step_ +
                            " BETWEEN ?3 AND ?4" + (metric ? " AND name = ?6" : "") + " ORDER BY " +
                            step_ + (metric && !by_attempt ? ", attempt" : "") + " LIMIT ?5";
    const auto lock = records_.lock();
    row_.emplace(records_.connection().prepare(sql));
  }

  /// Calls `visit(step, values)` with at most `most` rows of first..last. Returns how many.
  template <class Visit>
  std::size_t read(std::int64_t first, std::int64_t last, std::size_t most, const Visit& visit) {
    std::size_t count = 0;
    const auto lock = records_.lock();
    Statement& row = *row_;
    for (std::size_t i = 0; i < line_.stretches.size() && count < most; ++i) {
      const auto [from, to] = ends_of(i);
      if (to < first || from > last) continue;
      row.bind_all({line_.run_id, line_.stretches[i].attempt, std::max(first, from),
                    std::min(last, to), static_cast<std::int64_t>(most - count)});
      if (!quantities_.metric.empty()) row.bind(6, quantities_.metric);
      for (; count < most && row.step(); ++count) {
        for (std::size_t k = 0; k < values_.size(); ++k)
          values_[k] = row.real(static_cast<int>(k) + 1);
        visit(row.integer(0), std::span<const double>(values_));
      }
      row.reset();  // ends the transaction
    }
    return count;
  }

 private:
  /// Steps of a stretch that can have a row: a metric may be of the step after which the run began,
  /// and of an import it may be of any.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> ends_of(std::size_t i) const {
    const Stretch& stretch = line_.stretches[i];
    if (quantities_.metric.empty()) return {stretch.first, stretch.last};
    if (line_.imported) return {kLowest, std::numeric_limits<std::int64_t>::max()};
    return {i == 0 ? kLowest : stretch.first, stretch.last};
  }

  const RecordDatabase& records_;
  const RunLine& line_;
  const Quantities& quantities_;
  std::string step_ = "step";
  std::optional<Statement> row_;
  std::vector<double> values_;
};

SeriesPoints points_of(const Quantities& quantities) {
  return {.step = {}, .values = std::vector<std::vector<double>>(quantities.size())};
}

void append(SeriesPoints& points, std::int64_t step, std::span<const double> values) {
  points.step.push_back(step);
  for (std::size_t k = 0; k < values.size(); ++k) points.values[k].push_back(values[k]);
}

/// Ascending, without repetition: even ones from first to last, and of the distance between the
/// first two of these a geometric sequence.
std::vector<std::int64_t> steps_to_pick(std::int64_t first, std::int64_t last, std::size_t most) {
  const double span = static_cast<double>(last) - static_cast<double>(first);
  const std::size_t early = most / 8, even = std::max<std::size_t>(most - early, 2);
  const double distance = span / static_cast<double>(even - 1);
  std::vector<std::int64_t> steps;
  const auto add = [&](double offset) {
    // Unsigned, since the steps of a damaged file may lie farther apart than a number reaches.
    steps.push_back(
        offset >= span ? last
                       : static_cast<std::int64_t>(static_cast<std::uint64_t>(first) +
                                                   static_cast<std::uint64_t>(std::round(offset))));
  };
  for (std::size_t i = 1; i <= early && distance > 1; ++i)
    add(std::pow(distance, static_cast<double>(i) / static_cast<double>(early + 1)) - 1);
  for (std::size_t i = 0; i + 1 < even; ++i) add(distance * static_cast<double>(i));
  add(span);
  std::ranges::sort(steps);
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  return steps;
}

void add_value(SeriesSpread& spread, double value) {
  if (!std::isfinite(value)) return;
  if (spread.values == 0) {
    spread = {
        .first = value, .low = value, .mean = value, .high = value, .last = value, .values = 1};
    return;
  }
  spread.low = std::min(spread.low, value);
  spread.high = std::max(spread.high, value);
  spread.last = value;
  ++spread.values;
  spread.mean += (value - spread.mean) / static_cast<double>(spread.values);
}

void join(SeriesSpread& spread, const SeriesSpread& next) {
  if (next.values == 0) return;
  if (spread.values == 0) {
    spread = next;
    return;
  }
  const auto values = spread.values + next.values;
  spread.mean +=
      (next.mean - spread.mean) * (static_cast<double>(next.values) / static_cast<double>(values));
  spread.low = std::min(spread.low, next.low);
  spread.high = std::max(spread.high, next.high);
  spread.last = next.last;
  spread.values = values;
}

}  // namespace

std::vector<std::string> metric_names(const RecordDatabase& records, const std::string& run_id) {
  std::vector<std::string> names;
  records.query("SELECT DISTINCT name FROM metrics WHERE run_id = ? ORDER BY name", {run_id},
                [&](const auto&, const auto& row) {
                  if (const auto* name = std::get_if<std::string>(&row[0])) names.push_back(*name);
                });
  return names;
}

SeriesPoints pick_points(const RecordDatabase& records, const RunLine& line,
                         const Quantities& quantities, std::size_t most, StepRange range) {
  SeriesPoints points = points_of(quantities);
  LineRows rows(records, line, quantities);
  if (line.empty()) return points;
  const auto first = std::max(range.first, line.first());
  const auto last = std::min(range.last, line.last());
  if (first > last) return points;
  const auto wanted = steps_to_pick(first, last, std::max<std::size_t>(most, 3));
  const auto keep = [&](std::int64_t found, std::span<const double> values) {
    append(points, found, values);
  };
  if (!quantities.metric.empty()) {
    // The rows of a name cannot be looked up, and are few: there is one for each evaluation.
    auto next = wanted.begin();
    rows.read(first, last, kAll, [&](std::int64_t found, std::span<const double> values) {
      if (next == wanted.end() || found < *next) return;
      keep(found, values);
      while (next != wanted.end() && *next <= found) ++next;
    });
    return points;
  }
  for (const auto step : wanted) {
    if (!points.step.empty() && step <= points.step.back()) continue;
    rows.read(step, last, 1, keep);
  }
  return points;
}

SeriesPoints points_after(const RecordDatabase& records, const RunLine& line,
                          const Quantities& quantities, std::int64_t after, std::size_t most) {
  SeriesPoints points = points_of(quantities);
  if (after == StepRange{}.last) return points;
  LineRows(records, line, quantities)
      .read(
          after + 1, StepRange{}.last, most,
          [&](std::int64_t step, std::span<const double> values) { append(points, step, values); });
  return points;
}

SeriesBins::SeriesBins(Quantities quantities, std::size_t most, StepRange range)
    : quantities_(std::move(quantities)),
      most_(std::max<std::size_t>(most, 64)),
      range_{std::max<std::int64_t>(range.first, 0), range.last},
      per_octave_(static_cast<std::int64_t>(std::bit_floor(most_ / 64))) {
}  // of 63 octaves at most

bool SeriesBins::follow(const RecordDatabase& records, const RunLine& line, std::size_t rows) {
  forget_after(common_end(line_, line));
  line_ = line;
  LineRows source(records, line_, quantities_);
  while (rows > 0) {
    const std::size_t most = std::min(rows, kRowsAtOnce);
    const std::int64_t from =
        read_to_ == kLowest ? range_.first : std::max(range_.first, read_to_ + 1);
    const std::size_t count =
        source.read(from, range_.last, most,
                    [&](std::int64_t step, std::span<const double> values) { add(step, values); });
    if (count < most) return true;
    rows -= count;
  }
  return false;
}

void SeriesBins::forget_after(std::int64_t step) {
  if (read_to_ <= step) return;
  while (!bins_.empty() && bins_.back().last > step) bins_.pop_back();
  read_to_ = bins_.empty() ? kLowest : bins_.back().last;
  if (bins_.empty()) width_ = 1;
}

std::int64_t SeriesBins::bin_of(std::int64_t step) const {
  const auto octave = static_cast<std::int64_t>(
      std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(step, 1))));
  const std::int64_t width = std::clamp<std::int64_t>(octave / per_octave_, 1, width_);
  return step & ~(width - 1);
}

void SeriesBins::add(std::int64_t step, std::span<const double> values) {
  read_to_ = step;
  while (bins_.size() == most_ && bin_of(bins_.back().first) != bin_of(step)) widen();
  if (bins_.empty() || bin_of(bins_.back().first) != bin_of(step)) {
    bins_.push_back(
        {.first = step, .last = step, .rows = 0, .of = std::vector<SeriesSpread>(values.size())});
  }
  SeriesBin& bin = bins_.back();
  bin.last = step;
  ++bin.rows;
  for (std::size_t k = 0; k < values.size(); ++k) add_value(bin.of[k], values[k]);
}

/// Doubles the width until bins fall together.
void SeriesBins::widen() {
  const std::size_t before = bins_.size();
  while (bins_.size() == before) {
    width_ *= 2;
    std::vector<SeriesBin> wide;
    for (auto& bin : bins_) {
      if (wide.empty() || bin_of(wide.back().first) != bin_of(bin.first)) {
        wide.push_back(std::move(bin));
        continue;
      }
      wide.back().last = bin.last;
      wide.back().rows += bin.rows;
      for (std::size_t k = 0; k < bin.of.size(); ++k) join(wide.back().of[k], bin.of[k]);
    }
    bins_ = std::move(wide);
  }
}

}  // namespace olmo::store
