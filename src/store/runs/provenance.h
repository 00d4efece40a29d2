#pragma once

#include "core/json.h"
#include "core/policy.h"

namespace olmo::store {

// JSON texts for the record: how and where numbers were computed.

/// Numerics, instruction set, threads, device, precision.
Json policy_json(const Policy& policy);
/// Version, revision, compiler, flags and library versions.
Json build_json();
/// core/machine.h, with bytes that are not UTF-8 replaced.
Json environment_json();

}  // namespace olmo::store
