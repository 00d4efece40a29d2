#pragma once

#include "core/compute/policy.h"
#include "core/files/json.h"

namespace olmo::store {

// JSON texts for the record: how and where numbers were computed.

/// Numerics, instruction set, threads, device, precision.
Json policy_json(const Policy& policy);
/// Version, revision, compiler, flags and library versions.
Json build_json();
/// core/compute/machine.h, with bytes that are not UTF-8 replaced.
Json environment_json();

}  // namespace olmo::store
