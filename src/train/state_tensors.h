// The tensors of a training's state, as far as a rank holds them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/compute/named_tensors.h"
#include "core/compute/policy.h"
#include "core/trace/op_trace.h"
#include "optim/optimizer.h"
#include "sharding/rank_units.h"
#include "store/runs/run_records.h"

namespace olmo::train {

struct StateTensor {
  std::string part;  ///< "model" or "optim"
  std::string name;  ///< of the parameter; in `optim`, KEY/PARAMETER (optim/optimizer.h)
  /// The number of the parameter, in the model's order, whose shape the whole tensor has. Nothing:
  /// a number, which every rank holds.
  std::optional<std::size_t> parameter;
  at::Tensor owned;  ///< live; see sharding::RankUnits::owned_parameters
};

/// Tensors shaped as the parameters and in their order.
std::vector<StateTensor> state_of_parameters(const std::string& part, const NamedTensors& owned);
/// Those of an optimizer of the units' parameters.
std::vector<StateTensor> state_of_optimizer(const sharding::RankUnits& units,
                                            const optim::OptimState& owned);

/// SHA-256 of each tensor's bytes, in order, the same on every rank. Collective.
std::vector<store::StateHash> hash_state(const Policy& policy, const sharding::RankUnits& units,
                                         const std::vector<StateTensor>& tensors);

/// Adds each whole tensor to every rank's trace under `prefix` and its name. Collective.
void trace_state(const Policy& policy, const sharding::RankUnits& units, const std::string& prefix,
                 const std::vector<StateTensor>& tensors, OpTrace& trace);

}  // namespace olmo::train
