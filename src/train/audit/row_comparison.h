#pragma once

#include <optional>
#include <vector>

#include "store/run_records.h"
#include "train/audit/recorded_steps.h"

namespace olmo::train {

/// The columns in which a recorded row and a computed one differ in any bit, in the order in which
/// a step computes them; times are not compared.
std::vector<Finding> compare_rows(const store::StepRecord& recorded,
                                  const store::StepRecord& computed);

/// Of the state after `step`: tensors whose hash differs, or that one side lacks, in the order of
/// `computed`. Only hashes of parts that both have are compared.
std::vector<Finding> compare_states(std::int64_t step, const std::string& source,
                                    const std::vector<store::StateHash>& recorded,
                                    const std::vector<store::StateHash>& computed);

}  // namespace olmo::train
