#pragma once

#include <optional>
#include <vector>

#include "audit/audited_run.h"
#include "store/run_records.h"

namespace olmo::audit {

/// The columns in which a recorded row and a computed one differ in any bit, in the order in which
/// a step computes them; times are not compared.
std::vector<store::Finding> compare_rows(const store::StepRecord& recorded,
                                         const store::StepRecord& computed,
                                         std::int64_t chain_format);

/// Of the state after `step`: tensors whose hash differs, or that one side lacks, in the order of
/// `computed`. Only hashes of parts that both have are compared.
std::vector<store::Finding> compare_states(std::int64_t step, const std::string& source,
                                           const std::vector<store::StateHash>& recorded,
                                           const std::vector<store::StateHash>& computed);

}  // namespace olmo::audit
