#pragma once

#include <algorithm>
#include <vector>

#include <nlohmann/json.hpp>

#include "data/batch.h"
#include "support/catch.h"

namespace olmo::test {

/// Checks that an instance is kept as OLMo's list of its runs wants it, each {start, end, period,
/// times}: period by period, up to one repeat more than the longest run has.
inline void check_runs(const std::vector<std::int64_t>& ids, const nlohmann::json& runs,
                       std::int64_t min_period, std::int64_t max_period) {
  for (std::int64_t period = min_period; period <= max_period; ++period) {
    std::int64_t most = 0;
    for (const auto& run : runs)
      if (run.at(2) == period) most = std::max(most, run.at(3).get<std::int64_t>());
    for (std::int64_t count = 1; count <= most + 1; ++count) {
      INFO("period " << period << ", " << count << " times");
      data::InstanceFilterConfig config;
      config.repetition_min_period = config.repetition_max_period = period;
      config.repetition_max_count = count;
      CHECK(data::keep_instance(ids, config) == (most < count));
    }
  }
}

}  // namespace olmo::test
