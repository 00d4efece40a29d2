#pragma once

#include <string>
#include <vector>

#include "core/hash.h"
#include "core/named_tensors.h"
#include "store/run_records.h"

namespace olmo::train {

/// SHA-256 of every tensor's bytes, so that a difference has a name; several tensors at once.
std::vector<store::StateHash> hash_tensors(const std::string& part, const NamedTensors& tensors);

/// SHA-256 over the hash chain and, in the order of their parts and names, over every part, name
/// and hash, so that none of them can be altered alone.
Digest seal_of(std::vector<store::StateHash> hashes, const Digest& chain);

}  // namespace olmo::train
