// The line of steps that led to a run's present weights: an attempt that began before a step has
// replaced it. (As the view surviving_steps, which takes long where there are many steps.)
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "store/database/record_database.h"
#include "store/runs/run_records.h"

namespace olmo::store {

/// The steps first..last of an attempt.
struct Stretch {
  std::int64_t attempt = 0;
  std::int64_t first = 0;
  std::int64_t last = std::numeric_limits<std::int64_t>::max();
  bool operator==(const Stretch&) const = default;
};

/// What each attempt has of the line, in their order; a stretch whose last is below its first is
/// empty. The end of the last one is open.
std::vector<Stretch> stretches_of(std::span<const AttemptRecord> attempts);

/// SQL: whether `row`, as the query names a table with columns run_id, attempt and step, is of a
/// step on the line.
std::string is_on_line(const std::string& row);

/// The line of a run as far as its rows have come. An imported run has one stretch, of positions
/// (store/database/schema.h): they are called steps here, too.
struct RunLine {
  std::string run_id;
  bool imported = false;
  std::vector<Stretch> stretches;  ///< those that have rows, ascending; their ends are rows

  [[nodiscard]] bool empty() const { return stretches.empty(); }
  /// Of a line that is not empty.
  [[nodiscard]] std::int64_t first() const { return stretches.front().first; }
  [[nodiscard]] std::int64_t last() const { return stretches.back().last; }
};

/// Costs some index lookups, whatever the run's length. Throws Error(kUsage) if the database does
/// not hold the run.
RunLine read_line(const RecordDatabase& records, const std::string& run_id);
/// The same of a run whose rows were read.
RunLine read_line(const RecordDatabase& records, const RunRecord& run,
                  std::span<const AttemptRecord> attempts);

/// The last step up to which two lines of a run have the same rows: the second continues the first
/// if that is the first's last. Below the first step of both: they have none in common.
std::int64_t common_end(const RunLine& before, const RunLine& now);

}  // namespace olmo::store
