#include "store/runs/energy_rows.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace olmo::store {

bool is_measured(const EnergyRecord& row) {
  return row.joules && std::isfinite(*row.joules) && *row.joules > 0;
}

std::vector<EnergyRecord> sum_by_sensor(const std::vector<EnergyRecord>& rows) {
  std::vector<EnergyRecord> sums;
  const auto merge = [](std::optional<double>& sum, const std::optional<double>& value,
                        bool total) {
    if (value) sum = total ? std::max(sum.value_or(0), *value) : sum.value_or(0) + *value;
  };
  for (const auto& row : rows) {
    auto sum = std::find_if(sums.begin(), sums.end(), [&](const auto& other) {
      return other.source == row.source && other.device == row.device &&
             other.covers == row.covers && other.host == row.host;
    });
    if (sum == sums.end()) {
      sum = sums.emplace(sums.end());
      sum->source = row.source;
      sum->device = row.device;
      sum->covers = row.covers;
      sum->host = row.host;
    }
    if (is_measured(row)) merge(sum->joules, row.joules, row.covers == "job");
    if (is_measured(row)) merge(sum->seconds, row.seconds, row.covers == "job");
    sum->attempt = row.attempt;
    sum->samples += row.samples;
    if (sum->note.empty() || is_measured(row)) sum->note = row.note;
  }
  return sums;
}

}  // namespace olmo::store
