#include "train/gradient_tree.h"

#include "core/error.h"
#include "ops/elementwise.h"

namespace olmo::train {

GradientTree::GradientTree(Policy policy, NamedTensors total, std::function<NamedTensors()> make)
    : policy_(std::move(policy)), make_(std::move(make)), sets_{std::move(total)} {}

const NamedTensors& GradientTree::leaf() {
  if (levels_.size() == sets_.size()) sets_.push_back(make_());
  return sets_[levels_.size()];
}

// Like a binary counter: level k stands for a sum of 2^k micro-batches, and two neighbours of one
// level are added at once. So the order of additions depends on the number of micro-batches alone,
// and only log2(n) sets of gradients are held.
void GradientTree::push() {
  levels_.push_back(0);
  while (levels_.size() >= 2 && levels_.back() == levels_[levels_.size() - 2]) merge_last_two();
}

// What is left over, from the right: the last and smallest sums are added first.
void GradientTree::finish() {
  OLMO_CHECK(!levels_.empty());
  while (levels_.size() >= 2) merge_last_two();
  levels_.clear();
}

void GradientTree::merge_last_two() {
  const NamedTensors& right = sets_[levels_.size() - 1];
  const NamedTensors& left = sets_[levels_.size() - 2];
  for (std::size_t i = 0; i < left.size(); ++i) {
    ops::add(policy_, left[i].tensor, right[i].tensor, left[i].tensor);
  }
  levels_.pop_back();
  ++levels_.back();
}

}  // namespace olmo::train
