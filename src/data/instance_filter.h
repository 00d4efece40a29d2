#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/data_config.h"

namespace olmo::data {

/// A stretch [start, end) in which a sequence of `period` tokens repeats back to back; `times` =
/// (end - start) / period.
struct PeriodicRun {
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::int64_t period = 0;
  std::int64_t times = 0;
  friend bool operator==(const PeriodicRun&, const PeriodicRun&) = default;
};

/// OLMo's `find_periodic_sequences` (olmo/data/util.py) run for run, its blind spots included: the
/// ids are cut into rows of `period`, and only a row that equals the whole row before it betrays a
/// run; so a run must repeat at least 3 times. Periods [min_period, min(max_period, size / 3)]; ids
/// must not be negative.
std::vector<PeriodicRun> find_periodic_runs(std::span<const std::int64_t> ids,
                                            std::int64_t max_period, std::int64_t min_period = 1);

/// False if some run repeats `repetition_max_count` times or more: OLMo keeps such an instance in
/// the batch and masks all its labels.
bool keep_instance(std::span<const std::int64_t> ids, const InstanceFilterConfig& config);

}  // namespace olmo::data
