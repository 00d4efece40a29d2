#pragma once

#include <string>
#include <vector>

#include "core/hash.h"
#include "core/named_tensors.h"
#include "store/run_records.h"

namespace olmo::train {

/// SHA-256 of every tensor's bytes, so that a difference has a name; several tensors at once.
std::vector<store::StateHash> hash_tensors(const std::string& part, const NamedTensors& tensors);

}  // namespace olmo::train
