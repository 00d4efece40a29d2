#include "sharding/gradient_exchange.h"

#include <algorithm>
#include <bit>

#include "core/error.h"
#include "ops/elementwise.h"
#include "sharding/memory.h"

namespace olmo::sharding {
namespace {

int level_of(int leaves) { return std::countr_zero(static_cast<unsigned>(leaves)); }

/// Adds neighbours, then neighbours of those; the sum is in the first. fp32, a power of two of
/// them.
void add_up(const Policy& policy, const std::vector<at::Tensor>& terms) {
  for (std::size_t step = 1; step < terms.size(); step *= 2) {
    for (std::size_t i = 0; i < terms.size(); i += 2 * step)
      ops::add(policy, terms[i], terms[i + step], terms[i]);
  }
}

}  // namespace

GradientExchange::GradientExchange(const model::ModelConfig& config, const Policy& policy,
                                   const ModelLayout& layout, const RankGroups& groups)
    : config_(config),
      policy_(policy),
      layout_(layout),
      groups_(groups),
      type_(policy.mixed_precision == MixedPrecision::kMixed ? at::kBFloat16 : at::kFloat),
      sent_(tensors_of(policy, type_)),
      of_group_(tensors_of(policy, type_)),
      of_group_before_(tensors_of(policy, type_)),
      widened_(tensors_of(policy, at::kFloat)),
      dealt_(tensors_of(policy, groups.shard().size() > 1 ? at::kFloat : type_)) {
  for (const UnitLayout& unit : layout.units())
    trees_.emplace_back(policy, zeros(policy, unit.slice(), at::kFloat));
  if (groups.ranks() == 1) {
    leaves_in_trees_.resize(trees_.size());
    return;
  }
  const auto units = layout.units().size();
  for (std::size_t i = 0; i < std::min<std::size_t>(units, 3); ++i) {
    leaf_memory_.push_back(zeros(
        policy, i == 0 ? layout.units()[0].buffer() : layout.largest_block_buffer(), at::kFloat));
  }
  for (std::size_t unit = 0; unit < units; ++unit) {
    const UnitLayout& place = layout.units()[unit];
    const at::Tensor buffer = leaf_memory_[place_in_turn(unit)].narrow(0, 0, place.buffer());
    leaves_.push_back({buffer, model::place_some(config_, place.views(buffer))});
  }
}

void GradientExchange::begin(const Round& round) {
  OLMO_CHECK(round.count >= 1 && round.count <= groups_.ranks());
  round_ = round;
}

const model::ModelTensors& GradientExchange::leaf(std::size_t unit) {
  if (groups_.ranks() == 1) return leaf_in_tree(unit);
  if (is_sent_from_place_of(unit)) advance();
  return leaves_[unit].tensors;
}

bool GradientExchange::is_sent_from_place_of(std::size_t unit) const {
  const auto shares = [&](const auto& on_way) {
    return on_way && place_in_turn(on_way->unit) == place_in_turn(unit);
  };
  return shares(leaves_on_way_) || (groups_.shard().size() == 1 && shares(deals_on_way_));
}

const model::ModelTensors& GradientExchange::leaf_in_tree(std::size_t unit) {
  const at::Tensor set = trees_[unit].leaf();
  auto& known = leaves_in_trees_[unit];
  for (const Leaf& leaf : known)
    if (leaf.buffer.is_same(set)) return leaf.tensors;
  known.push_back({set, model::place_some(config_, layout_.units()[unit].views(set))});
  return known.back().tensors;
}

void GradientExchange::done(std::size_t unit) {
  if (groups_.ranks() == 1) return trees_[unit].push();
  advance();
  if (groups_.shard().size() > 1) return begin_in_group(unit);
  std::vector<at::Tensor> mine;
  if (groups_.world().rank() < round_.count) mine.push_back(to_send(unit));
  begin_deals(unit, round_, mine);
}

void GradientExchange::finish() {
  advance();
  push_dealt();
  for (GradientTree& tree : trees_) tree.finish();
}

int GradientExchange::leaves_of(const Round& round, int group) const {
  return sharding::leaves_of(round.count, group, groups_.shard().size());
}

bool GradientExchange::adds(const Round& round, int group) const {
  return adds_leaves(round.count, group, groups_.shard().size());
}

int GradientExchange::terms_of(const Round& round, int group) const {
  return sharding::terms_of(round.count, group, groups_.shard().size());
}

// Sums are fp32, and one deal has one type.
at::ScalarType GradientExchange::type_of_deal(const Round& round) const {
  return adds(round, 0) ? at::kFloat : type_;
}

at::Tensor GradientExchange::to_send(std::size_t unit) {
  const at::Tensor& leaf = leaves_[unit].buffer;
  if (type_ == at::kFloat) return leaf;
  at::Tensor rounded = sent_.shaped({leaf.numel()});
  rounded.copy_(leaf);
  return rounded;
}

void GradientExchange::begin_in_group(std::size_t unit) {
  dist::Communicator& group = groups_.shard();
  const auto ranks = static_cast<std::size_t>(group.size());
  const std::int64_t part = groups_.replicas().size() * slice(unit);
  const int leaves = leaves_of(round_, groups_.world().rank() / group.size());
  const bool active = group.rank() < leaves;
  const at::Tensor send = active ? to_send(unit) : sent_.shaped({0});
  // What arrived for the unit before may be what the deals send.
  if (groups_.replicas().size() > 1) std::swap(of_group_, of_group_before_);
  const at::Tensor receive = of_group_.shaped({leaves * part});
  const std::vector<std::int64_t> send_counts(ranks, active ? part : 0);
  std::vector<std::int64_t> receive_counts(ranks, 0);
  std::fill_n(receive_counts.begin(), leaves, part);
  leaves_on_way_ = Leaves{unit, round_, receive,
                          group.all_to_all(send, send_counts, receive, receive_counts)};
}

std::vector<at::Tensor> GradientExchange::terms_of(const Leaves& leaves) {
  const Round& round = leaves.round;
  const int group = groups_.world().rank() / groups_.shard().size();
  at::Tensor received = leaves.received;
  if (groups_.replicas().size() > 1 && received.scalar_type() != type_of_deal(round)) {
    const at::Tensor widened = widened_.shaped({received.numel()});
    widened.copy_(received);
    received = widened;
  }
  const std::int64_t part = groups_.replicas().size() * slice(leaves.unit);
  std::vector<at::Tensor> terms;
  for (int i = 0; i < leaves_of(round, group); ++i)
    terms.push_back(received.narrow(0, i * part, part));
  if (groups_.replicas().size() > 1 && adds(round, group)) {
    add_up(policy_, terms);
    terms.resize(1);
  }
  return terms;
}

void GradientExchange::begin_deals(std::size_t unit, const Round& round,
                                   const std::vector<at::Tensor>& mine) {
  dist::Communicator& replicas = groups_.replicas();
  const std::int64_t size = slice(unit);
  const at::ScalarType type = type_of_deal(round);
  int deals = 0;
  std::int64_t terms = 0;
  for (int group = 0; group < replicas.size(); ++group) {
    deals = std::max(deals, terms_of(round, group));
    terms += terms_of(round, group);
  }
  at::Tensor memory = dealt_.shaped({terms * size});
  if (memory.scalar_type() != type) memory = memory.view(type);  // leaves where sums may come, too
  std::int64_t begin = 0;
  Deals on_way{unit, round, {}, {}};
  for (int i = 0; i < deals; ++i) {
    const bool has = i < std::ssize(mine);
    const at::Tensor send = has ? mine[static_cast<std::size_t>(i)] : memory.narrow(0, 0, 0);
    const std::vector<std::int64_t> send_counts(static_cast<std::size_t>(replicas.size()),
                                                has ? size : 0);
    std::vector<std::int64_t> receive_counts;
    std::int64_t count = 0;
    for (int group = 0; group < replicas.size(); ++group) {
      receive_counts.push_back(i < terms_of(round, group) ? size : 0);
      count += receive_counts.back();
    }
    on_way.dealt.push_back(memory.narrow(0, begin, count));
    begin += count;
    on_way.arriving.push_back(
        replicas.all_to_all(send, send_counts, on_way.dealt.back(), receive_counts));
  }
  deals_on_way_ = std::move(on_way);
}

/// Adds what has come of the deals.
void GradientExchange::push_dealt() {
  if (!deals_on_way_) return;
  auto& [unit, round, arriving, dealt] = *deals_on_way_;
  const std::int64_t size = slice(unit);
  std::vector<std::int64_t> next(dealt.size(), 0);
  for (auto& deal : arriving) deal.wait();
  for (int group = 0; group < groups_.replicas().size(); ++group) {
    const int level = adds(round, group) ? level_of(groups_.shard().size()) : 0;
    for (int i = 0; i < terms_of(round, group); ++i) {
      const auto deal = static_cast<std::size_t>(i);
      trees_[unit].push(dealt[deal].narrow(0, size * next[deal]++, size), level);
    }
  }
  deals_on_way_.reset();
}

/// What is on its way goes a step on: deals end in the tree, leaves of the group in deals.
void GradientExchange::advance() {
  push_dealt();
  if (!leaves_on_way_) return;
  leaves_on_way_->arriving.wait();
  const auto terms = terms_of(*leaves_on_way_);
  if (groups_.replicas().size() > 1) {
    begin_deals(leaves_on_way_->unit, leaves_on_way_->round, terms);
  } else {
    for (const auto& term : terms) trees_[leaves_on_way_->unit].push(term);
  }
  leaves_on_way_.reset();
}

std::vector<at::Tensor> GradientExchange::sums() const {
  std::vector<at::Tensor> sums;
  for (const GradientTree& tree : trees_) sums.push_back(tree.total());
  return sums;
}

GradientExchange::Bytes GradientExchange::held_bytes() const {
  Bytes held;
  for (const GradientTree& tree : trees_) held.trees += tree.sets() * bytes_of(tree.total());
  for (const at::Tensor& leaf : leaf_memory_) held.leaves += bytes_of(leaf);
  held.leaves += sent_.bytes();
  held.received =
      of_group_.bytes() + of_group_before_.bytes() + widened_.bytes() + dealt_.bytes();
  return held;
}

}  // namespace olmo::sharding
