// One trace of a step that several ranks computed.
#pragma once

#include <cstdint>
#include <vector>

#include "core/trace/op_trace.h"
#include "dist/communicator.h"

namespace olmo::train {

/// What a rank traced, and where it comes in the order of one process.
struct PlacedDigest {
  std::int64_t place = 0;
  OpDigest entry;
};

/// Adds what all ranks traced to each rank's `trace`, by place; of one place in the order given.
/// Collective.
void gather_trace(dist::Communicator& ranks, const std::vector<PlacedDigest>& mine, OpTrace& trace);

}  // namespace olmo::train
