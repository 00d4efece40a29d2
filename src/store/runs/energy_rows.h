// What sensors measured, summed up over the attempts of a run.
#pragma once

#include <vector>

#include "store/runs/run_records.h"

namespace olmo::store {

/// 0 is what a die reads whose energy its neighbour counts, not a measurement.
bool is_measured(const EnergyRecord& row);

/// Rows of one sensor over all attempts, in the order of their first ones. Slurm counts a job from
/// its start, so that the last row of a job holds those before.
std::vector<EnergyRecord> sum_by_sensor(const std::vector<EnergyRecord>& rows);

}  // namespace olmo::store
