#pragma once

#include "core/compute/policy.h"
#include "core/files/json.h"

namespace olmo::store {

/// How numbers are computed, for the record: numerics, instruction set, threads, device, precision,
/// and LibTorch's settings.
Json policy_json(const Policy& policy);

}  // namespace olmo::store
