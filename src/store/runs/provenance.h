#pragma once

#include "core/files/json.h"

namespace olmo::store {

// JSON texts for the record: by what and where numbers were computed.

/// Version, revision, compiler, flags and library versions.
Json build_json();
/// core/compute/machine.h, with bytes that are not UTF-8 replaced.
Json environment_json();

}  // namespace olmo::store
