#include "sharding/traffic.h"

#include <algorithm>
#include <optional>

#include "sharding/memory.h"
#include "sharding/rank_groups.h"

namespace olmo::sharding {
namespace {

using Kind = StepTraffic::Kind;

constexpr std::int64_t kFloat = 4, kBf16 = 2;
constexpr std::int64_t kLosses = 32;  ///< of a micro-batch: its sums and counts
constexpr std::int64_t kDigest = 32;  ///< of a sequence

void add(Kind& kind, std::int64_t bytes) {
  kind.calls += 1;
  kind.bytes += bytes;
}

Kind sum(std::initializer_list<Kind> kinds) {
  Kind total;
  for (const Kind& kind : kinds) {
    total.calls += kind.calls;
    total.bytes += kind.bytes;
  }
  return total;
}

/// The ranks of a step: groups of `shard` neighbours, and as many `replicas` as there are groups.
class Step {
 public:
  Step(const std::vector<UnitLayout>& units, const StepShape& shape, int rank)
      : units_(units),
        shape_(shape),
        shard_(shape.strategy.shard_ranks),
        replicas_(shape.ranks / shard_),
        group_(rank / shard_),
        place_(rank % shard_),
        travelling_(shape.bf16 ? kBf16 : kFloat) {}

  StepTraffic traffic() {
    if (shape_.ranks == 1) return {};
    for (std::int64_t first = 0; first < shape_.micro_batches; first += shape_.ranks) {
      const auto count = std::min<std::int64_t>(shape_.ranks, shape_.micro_batches - first);
      if (shard_ > 1) gather_for_a_pass();
      for (const UnitLayout& unit : units_) exchange(unit, static_cast<int>(count));
    }
    std::int64_t slices = 0;
    for (const UnitLayout& unit : units_) {
      slices += unit.slice();
      if (replicas_ > 1) add(traffic_.updates, (replicas_ - 1) * unit.slice() * travelling_);
    }
    for (int list = 0; list < 2; ++list)  // gradients, weights
      add(traffic_.norms, (shape_.ranks - 1) * (slices / kChunk) * kFloat);
    const std::int64_t rounds = (shape_.micro_batches + shape_.ranks - 1) / shape_.ranks;
    add(traffic_.facts, (shape_.ranks - 1) * rounds * kLosses);
    add(traffic_.facts, (shape_.ranks - 1) * rounds * shape_.micro_batch * kDigest);
    return traffic_;
  }

 private:
  void gather(std::size_t unit) {
    if (held_.empty()) held_.resize(units_.size());
    auto& held = held_[shape_.strategy.keeps_gathered ? unit : place_in_turn(unit)];
    if (held == unit) return;
    held = unit;
    add(traffic_.weights,
        std::int64_t{shard_ - 1} * replicas_ * units_[unit].slice() * travelling_);
  }

  /// Forward in ascending order, backward in descending order, the next unit's one ahead.
  void gather_for_a_pass() {
    const std::size_t count = units_.size();
    for (std::size_t unit = 0; unit < count; ++unit) {
      gather(unit);
      if (unit + 1 < count) gather(unit + 1);
    }
    for (std::size_t unit = count - 1; unit >= 1; --unit) {
      gather(unit);
      if (unit > 1) gather(unit - 1);
    }
  }

  void exchange(const UnitLayout& unit, int count) {
    if (shard_ > 1) {
      const bool active = place_ < leaves_of(count, group_, shard_);
      add(traffic_.leaves,
          active ? std::int64_t{shard_ - 1} * replicas_ * unit.slice() * travelling_ : 0);
    }
    if (replicas_ == 1) return;
    const std::int64_t element = adds_leaves(count, 0, shard_) ? kFloat : travelling_;
    int deals = 0;
    for (int group = 0; group < replicas_; ++group)
      deals = std::max(deals, terms_of(count, group, shard_));
    for (int i = 0; i < deals; ++i) {
      const bool has = i < terms_of(count, group_, shard_);
      add(traffic_.sums, has ? (replicas_ - 1) * unit.slice() * element : 0);
    }
  }

  const std::vector<UnitLayout>& units_;
  const StepShape& shape_;
  int shard_, replicas_, group_, place_;
  std::int64_t travelling_;  ///< bytes of an element
  std::vector<std::optional<std::size_t>> held_;
  StepTraffic traffic_;
};

}  // namespace

Kind StepTraffic::all_gathers() const { return sum({weights, updates, norms, facts}); }
Kind StepTraffic::all_to_alls() const { return sum({leaves, sums}); }
std::int64_t StepTraffic::bytes() const { return all_gathers().bytes + all_to_alls().bytes; }

StepTraffic traffic_of_step(const std::vector<UnitLayout>& units, const StepShape& shape,
                            int rank) {
  return Step(units, shape, rank).traffic();
}

}  // namespace olmo::sharding
