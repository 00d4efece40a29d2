// The sum of the gradients of a step's micro-batches.
#pragma once

#include <cstdint>
#include <vector>

#include "core/compute/policy.h"
#include "core/compute/tensor.h"

namespace olmo::sharding {

/// Adds the gradients of micro-batches 0..n-1 along one binary tree that depends on n alone:
/// neighbours are added as soon as both are there, as in a binary counter, and what is left at the
/// end from right to left. Each element is summed by itself, so that whoever owns a slice of the
/// gradients can sum that slice.
///
/// What is added lies in flat fp32 tensors of one size, the tree's *sets*. A *leaf* is the gradient
/// of one micro-batch. It is written into the tree's memory (`leaf`, then `push`), or comes from
/// elsewhere and is added from there.
class GradientTree {
 public:
  /// `total`: where the sum ends up, which is also the first set. Further ones begin as zeros.
  GradientTree(Policy policy, at::Tensor total);

  /// Sets that a tree of so many micro-batches holds, `total` included, if its leaves are written
  /// into its memory: one partial sum a level waits for its partner.
  static std::int64_t sets_for(std::int64_t micro_batches);
  /// The same if all leaves come from elsewhere: the last one needs no set.
  static std::int64_t sets_for_received(std::int64_t micro_batches);
  /// Sets that it holds by now.
  [[nodiscard]] std::int64_t sets() const { return std::ssize(sets_); }

  /// The set into which the next micro-batch's gradient has to be written.
  at::Tensor leaf();
  /// The leaf has been written.
  void push();
  /// The next 2^level micro-batches, whose sum along the tree is `sum`, fp32 or bf16. Their first
  /// number is a multiple of 2^level.
  void push(const at::Tensor& sum, int level = 0);
  /// Every micro-batch has been pushed: their sum is in `total`, and the tree is empty again.
  void finish();
  [[nodiscard]] const at::Tensor& total() const { return sets_.front(); }

 private:
  void merge_equal_levels();
  void merge_last_two();

  Policy policy_;
  std::vector<at::Tensor> sets_;  ///< a stack of subtrees, the leftmost first; sets_[0] is `total`
  std::vector<int> levels_;       ///< height of each subtree on the stack
};

}  // namespace olmo::sharding
