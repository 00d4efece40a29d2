// The bytes that a step of a training sends, reckoned from the layout of the units. A plan of a
// training shows them; tests hold them to the counters of real runs (dist::Traffic).
#pragma once

#include <cstdint>
#include <vector>

#include "dist/communicator.h"
#include "sharding/layout.h"
#include "sharding/strategy.h"

namespace olmo::sharding {

/// What of a step decides which bytes travel.
struct StepShape {
  int ranks = 1;
  Strategy strategy = {};
  std::int64_t micro_batches = 1;
  std::int64_t micro_batch = 1;  ///< sequences of one
  bool bf16 = false;  ///< weights and leaves travel as bf16 (MixedPrecision::kMixed), else as fp32
};

/// What a rank hands to the transport in a step, by what it is for. Bytes for three ranks count
/// three times.
struct StepTraffic {
  using Kind = dist::Traffic::Kind;

  Kind weights;  ///< all-gathers: a unit's weights before a pass uses them, from the shard group
  Kind leaves;   ///< all-to-alls: a unit's gradients of a micro-batch, within the shard group
  Kind sums;     ///< all-to-alls: the same, or the group's sum of them, between replicas
  Kind updates;  ///< all-gathers: new weights, between those who hold copies
  Kind norms;    ///< all-gathers: sums of squares by chunks, of gradients and of weights
  Kind facts;    ///< all-gathers: losses of the micro-batches, digests of their sequences

  /// Of one kind of collective.
  [[nodiscard]] Kind all_gathers() const;
  [[nodiscard]] Kind all_to_alls() const;
  [[nodiscard]] std::int64_t bytes() const;
};

/// Of rank `rank`; `units`: the layout of each in shape.ranks slices, the root first. That
/// is all that a Stepper sends; a training loop's decision after each step is some dozen bytes
/// more.
StepTraffic traffic_of_step(const std::vector<UnitLayout>& units, const StepShape& shape, int rank);

}  // namespace olmo::sharding
