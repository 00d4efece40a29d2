#pragma once

#include <optional>
#include <string>

#include "store/run_records.h"

namespace olmo::energy {

/// The energy of this job as Slurm's accounting (sacct) tells it, asked once when an attempt ends.
/// `job`: its number, as in SLURM_JOB_ID; nothing, if no job runs this. `sacct`: the program to
/// ask. Takes a few seconds at most. Slurm counts the job from its start, with all its attempts and
/// nodes.
store::EnergyRecord ask_slurm(const std::optional<std::string>& job, const std::string& sacct);

}  // namespace olmo::energy
