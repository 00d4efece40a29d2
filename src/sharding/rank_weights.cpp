#include "sharding/rank_weights.h"

#include <algorithm>

#include "core/error.h"
#include "sharding/memory.h"

namespace olmo::sharding {
RankWeights::RankWeights(const model::ModelConfig& config, const Policy& policy,
                         const ModelLayout& layout, const RankGroups& groups, bool keeps_gathered)
    : config_(config),
      policy_(policy),
      layout_(layout),
      groups_(groups),
      keeps_gathered_(keeps_gathered),
      dtypes_(model::dtypes_of(config, policy.mixed_precision)) {
  const bool rounded = policy.mixed_precision == MixedPrecision::kMixed;
  const auto copies = groups.replicas().size(), replica = groups.replicas().rank();
  for (const UnitLayout& unit : layout.units()) {
    parts_.push_back(zeros(policy, copies * unit.slice(), rounded ? at::kBFloat16 : at::kFloat));
    masters_.push_back(rounded ? zeros(policy, unit.slice(), at::kFloat)
                               : parts_.back().narrow(0, replica * unit.slice(), unit.slice()));
  }
  if (gathers()) {
    make_slots();
  } else {
    for (std::size_t unit = 0; unit < parts_.size(); ++unit)
      place(layout.units()[unit], parts_[unit]);
  }
}

void RankWeights::make_slots() {
  const at::ScalarType type = parts_.front().scalar_type();
  const auto units = layout_.units().size();
  slots_.resize(keeps_gathered_ ? units : std::min<std::size_t>(units, 3));
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const auto size =
        i == 0 || keeps_gathered_ ? layout_.units()[i].buffer() : layout_.largest_block_buffer();
    slots_[i].memory = new_tensor({size}, tensors_of(policy_, type));
  }
  for (std::size_t unit = 0; unit < units; ++unit)
    place(layout_.units()[unit], slot_of(unit).memory.narrow(0, 0, layout_.units()[unit].buffer()));
}

void RankWeights::place(const UnitLayout& unit, const at::Tensor& buffer) {
  units_.push_back({buffer, model::ComputeWeights(config_, dtypes_, unit.views(buffer)), false,
                    dist::Pending()});
}

RankWeights::Slot& RankWeights::slot_of(std::size_t unit) {
  return slots_[keeps_gathered_ ? unit : place_in_turn(unit)];
}

void RankWeights::begin_gathering(std::size_t unit) {
  Slot& slot = slot_of(unit);
  if (slot.unit == unit) return;
  OLMO_CHECK(!slot.is_acquired);
  units_[unit].arriving.wait();
  slot.gathering = groups_.shard().all_gather(parts_[unit], units_[unit].buffer);
  slot.unit = unit;
  units_[unit].is_rounded = false;
}

// A pass acquires the root, then the other units in ascending order, and for the backward pass in
// descending order.
std::optional<std::size_t> RankWeights::next_of(std::size_t unit, model::Pass pass) const {
  if (pass == model::Pass::kBackward) return unit > 1 ? std::optional(unit - 1) : std::nullopt;
  return unit + 1 < units_.size() ? std::optional(unit + 1) : std::nullopt;
}

const model::ModelTensors& RankWeights::acquire(std::size_t unit, model::Pass pass) {
  Unit& wanted = units_[unit];
  if (gathers()) {
    begin_gathering(unit);
    if (const auto next = next_of(unit, pass)) begin_gathering(*next);
    Slot& slot = slot_of(unit);
    slot.gathering.wait();
    slot.is_acquired = true;
  } else {
    wanted.arriving.wait();
  }
  if (!wanted.is_rounded) wanted.weights.update();
  wanted.is_rounded = true;
  return wanted.weights.tensors();
}

void RankWeights::release(std::size_t unit) {
  if (gathers()) slot_of(unit).is_acquired = false;
}

void RankWeights::changed() {
  settle();
  const auto replica = groups_.replicas().rank();
  for (std::size_t unit = 0; unit < units_.size(); ++unit) {
    const std::int64_t size = masters_[unit].numel();
    const at::Tensor mine = parts_[unit].narrow(0, replica * size, size);
    if (mine.scalar_type() != at::kFloat) mine.copy_(masters_[unit]);
    if (groups_.replicas().size() > 1)
      units_[unit].arriving = groups_.replicas().all_gather(mine, parts_[unit]);
    units_[unit].is_rounded = false;
  }
  for (Slot& slot : slots_) {
    OLMO_CHECK(!slot.is_acquired);
    slot.unit.reset();
  }
}

void RankWeights::settle() {
  for (Unit& unit : units_) unit.arriving.wait();
}

RankWeights::Bytes RankWeights::held_bytes() const {
  Bytes held;
  for (const auto& part : parts_) held.parts += bytes_of(part);
  for (std::size_t unit = 0; unit < masters_.size(); ++unit)
    if (!masters_[unit].is_alias_of(parts_[unit])) held.masters += bytes_of(masters_[unit]);
  for (const Slot& slot : slots_) held.slots += bytes_of(slot.memory);
  for (const Unit& unit : units_) held.copies += unit.weights.bytes();
  return held;
}

}  // namespace olmo::sharding
