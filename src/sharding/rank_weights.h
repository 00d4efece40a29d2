// The weights that a rank holds, and those that it gathers from others for as long as it computes
// with them.
#pragma once

#include <optional>
#include <vector>

#include "core/compute/policy.h"
#include "dist/communicator.h"
#include "model/precision.h"
#include "model/units.h"
#include "sharding/model_layout.h"
#include "sharding/rank_groups.h"
#include "sharding/strategy.h"

namespace olmo::sharding {

/// A rank keeps its *part* of each unit (rank_groups.h), and in it, or beside it, the fp32 *master*
/// of its slice, which an update changes. The part is fp32 and holds the master, unless all of the
/// network is computed in bf16 (MixedPrecision::kMixed): then it is bf16, and so is what travels.
///
/// Where the shard group is larger than one rank, a unit's parts are gathered when a pass acquires
/// it, and the next unit's at the same time, so that they travel while this one computes. What is
/// gathered goes into *slots*: one for the root, and two that the other units take in turn (or one
/// for each unit, see Strategy::keeps_gathered). A slot keeps its unit until another one needs it
/// or the weights change, so that the units around which a pass turns are gathered once.
///
/// Where several ranks have the same part, each hands the others the slice that it has changed. The
/// slices of a unit travel until a pass acquires it.
class RankWeights {
 public:
  /// Collective. The weights are undefined until they are set through masters() or tensors.
  RankWeights(const model::ModelConfig& config, const Policy& policy, const ModelLayout& layout,
              const RankGroups& groups, bool keeps_gathered);

  /// This rank's slice of every unit, fp32.
  [[nodiscard]] const std::vector<at::Tensor>& masters() const { return masters_; }
  /// The masters have changed: every rank gets the parts of which it holds other slices. Begins
  /// that; the masters must not be written again before every unit has been acquired, or settle().
  /// Collective.
  void changed();
  /// Waits for what changed() has begun.
  void settle();

  const model::ModelTensors& acquire(std::size_t unit, model::Pass pass);
  void release(std::size_t unit);

  /// Bytes: what is kept always, without masters that lie in it; the slots; rounded copies.
  struct Bytes {
    std::int64_t parts = 0, masters = 0, slots = 0, copies = 0;
    bool operator==(const Bytes&) const = default;
  };
  [[nodiscard]] Bytes held_bytes() const;

 private:
  /// A unit's weights where a pass finds them.
  struct Unit {
    at::Tensor buffer;  ///< the part, if that is the whole unit; else in a slot's memory
    model::ComputeWeights weights;
    bool is_rounded = false;  ///< what is computed with in another dtype
    dist::Pending arriving;   ///< the slices of the part that other ranks have changed
  };
  struct Slot {
    at::Tensor memory;
    std::optional<std::size_t> unit;  ///< that it holds or is going to hold
    dist::Pending gathering;
    bool is_acquired = false;
  };

  void make_slots();
  void place(const UnitLayout& unit, const at::Tensor& buffer);
  [[nodiscard]] bool gathers() const { return groups_.shard().size() > 1; }
  [[nodiscard]] Slot& slot_of(std::size_t unit);
  void begin_gathering(std::size_t unit);
  [[nodiscard]] std::optional<std::size_t> next_of(std::size_t unit, model::Pass pass) const;

  model::ModelConfig config_;
  Policy policy_;
  const ModelLayout& layout_;
  const RankGroups& groups_;
  bool keeps_gathered_;
  model::Dtypes dtypes_;
  std::vector<at::Tensor> parts_, masters_;
  std::vector<Unit> units_;
  std::vector<Slot> slots_;
};

}  // namespace olmo::sharding
