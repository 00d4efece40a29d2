#include "sharding/gradient_tree.h"

#include <bit>

#include "core/compute/fresh_pages.h"
#include "core/error.h"
#include "model/parameters.h"
#include "ops/elementwise.h"

namespace olmo::sharding {

GradientTree::GradientTree(Policy policy, at::Tensor total)
    : policy_(std::move(policy)), sets_{std::move(total)} {}

std::int64_t GradientTree::sets_for(std::int64_t micro_batches) {
  return static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(micro_batches)));
}

// The most subtrees that are on the stack after any of n leaves: as many as a number up to n has
// binary ones.
std::int64_t GradientTree::sets_for_received(std::int64_t micro_batches) {
  return sets_for(micro_batches + 1) - 1;
}

at::Tensor GradientTree::leaf() {
  if (levels_.size() == sets_.size()) {
    sets_.push_back(zero_tensor(sets_[0].sizes(), sets_[0].options()));
  }
  return sets_[levels_.size()];
}

void GradientTree::push() {
  levels_.push_back(0);
  merge_equal_levels();
}

void GradientTree::push(const at::Tensor& sum, int level) {
  OLMO_CHECK(levels_.empty() || levels_.back() >= level);
  if (!levels_.empty() && levels_.back() == level) {
    const at::Tensor& left = sets_[levels_.size() - 1];
    ops::add(policy_, left, sum, left);
    ++levels_.back();
  } else {
    leaf().copy_(sum);
    levels_.push_back(level);
  }
  merge_equal_levels();
}

// Like a binary counter: level k stands for a sum of 2^k micro-batches, and two neighbours of one
// level are added at once. So the order of additions depends on the number of micro-batches alone,
// and only log2(n) sets of gradients are held.
void GradientTree::merge_equal_levels() {
  while (levels_.size() >= 2 && levels_.back() == levels_[levels_.size() - 2]) merge_last_two();
}

// What is left over, from the right: the last and smallest sums are added first.
void GradientTree::finish() {
  OLMO_CHECK(!levels_.empty());
  while (levels_.size() >= 2) merge_last_two();
  levels_.clear();
}

void GradientTree::merge_last_two() {
  const at::Tensor& right = sets_[levels_.size() - 1];
  const at::Tensor& left = sets_[levels_.size() - 2];
  ops::add(policy_, left, right, left);
  levels_.pop_back();
  ++levels_.back();
}

}  // namespace olmo::sharding
