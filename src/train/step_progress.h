#pragma once

#include <cstdint>

#include "core/progress.h"
#include "store/run_records.h"

namespace olmo::train {

/// What a person sees of a step, of those from `first_step` to `last_step`.
Progress progress_of(const store::StepRecord& row, std::int64_t first_step, std::int64_t last_step);

}  // namespace olmo::train
