#include "data/instance_filter.h"

#include <algorithm>

#include "core/error.h"

namespace olmo::data {
namespace {

/// The ids as a matrix of `period` columns, padded at the end with -1 (a whole row of it if the ids
/// fill their rows), each row compared with the one above; the row above the first is the last, as
/// numpy.roll wraps.
class Rows {
 public:
  Rows(std::span<const std::int64_t> ids, std::int64_t period)
      : ids_(ids), period_(period), count_(static_cast<std::int64_t>(ids.size()) / period + 1) {}

  [[nodiscard]] std::int64_t count() const { return count_; }

  [[nodiscard]] bool equals_above(std::int64_t row, std::int64_t column) const {
    return value(row, column) == value(row == 0 ? count_ - 1 : row - 1, column);
  }

  [[nodiscard]] bool all_equal_above(std::int64_t row) const {
    return equal_from_left(row) == period_;
  }

  /// Number of leading columns that equal the row above.
  [[nodiscard]] std::int64_t equal_from_left(std::int64_t row) const {
    std::int64_t column = 0;
    while (column < period_ && equals_above(row, column)) ++column;
    return column;
  }

  /// Number of trailing columns that equal the row above.
  [[nodiscard]] std::int64_t equal_from_right(std::int64_t row) const {
    std::int64_t length = 0;
    while (length < period_ && equals_above(row, period_ - 1 - length)) ++length;
    return length;
  }

 private:
  [[nodiscard]] std::int64_t value(std::int64_t row, std::int64_t column) const {
    const auto i = static_cast<std::size_t>(row * period_ + column);
    return i < ids_.size() ? ids_[i] : -1;
  }

  std::span<const std::int64_t> ids_;
  std::int64_t period_;
  std::int64_t count_;
};

/// The run around rows [first, last], all equal to the row above them. There is a row before (the
/// first row is compared with the padded last one, and never equals it) and a row after (the last
/// row, for the same reason, never belongs to a run).
PeriodicRun widen_run(const Rows& rows, std::int64_t first, std::int64_t last,
                      std::int64_t period) {
  OLMO_CHECK(first > 0 && last + 1 < rows.count());
  PeriodicRun run{.start = (first - 1) * period - rows.equal_from_right(first - 1),
                  .end = (last + 1) * period + rows.equal_from_left(last + 1),
                  .period = period,
                  .times = 0};
  run.times = (run.end - run.start) / period;
  return run;
}

/// Calls `use` for every run until it returns false.
template <typename Use>
void for_each_run(std::span<const std::int64_t> ids, std::int64_t max_period,
                  std::int64_t min_period, const Use& use) {
  OLMO_CHECK(min_period >= 1);
  const auto size = static_cast<std::int64_t>(ids.size());
  for (std::int64_t period = min_period; period <= std::min(max_period, size / 3); ++period) {
    const Rows rows(ids, period);
    for (std::int64_t row = 0; row < rows.count(); ++row) {
      if (!rows.all_equal_above(row)) continue;
      const std::int64_t first = row;
      while (row + 1 < rows.count() && rows.all_equal_above(row + 1)) ++row;
      const PeriodicRun run = widen_run(rows, first, row, period);
      if (run.times > 2 && !use(run)) return;
    }
  }
}

}  // namespace

std::vector<PeriodicRun> find_periodic_runs(std::span<const std::int64_t> ids,
                                            std::int64_t max_period, std::int64_t min_period) {
  std::vector<PeriodicRun> runs;
  for_each_run(ids, max_period, min_period, [&](const PeriodicRun& run) {
    runs.push_back(run);
    return true;
  });
  return runs;
}

bool keep_instance(std::span<const std::int64_t> ids, const InstanceFilterConfig& config) {
  bool keep = true;
  for_each_run(ids, config.repetition_max_period, config.repetition_min_period,
               [&](const PeriodicRun& run) {
                 keep = run.times < config.repetition_max_count;
                 return keep;
               });
  return keep;
}

}  // namespace olmo::data
