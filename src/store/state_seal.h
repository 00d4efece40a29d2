#pragma once

#include <vector>

#include "core/hash.h"
#include "store/run_records.h"

namespace olmo::store {

/// SHA-256 over the hash chain and, in the order of their parts and names, over every part, name
/// and hash, so that none of them can be altered alone.
Digest seal_of(std::vector<StateHash> hashes, const Digest& chain);

}  // namespace olmo::store
