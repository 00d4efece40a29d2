#pragma once

#include <functional>
#include <vector>

#include "core/named_tensors.h"
#include "core/policy.h"

namespace olmo::train {

/// Adds the gradients of micro-batches 0..n-1 along one binary tree that depends on n alone:
/// neighbours are added as soon as both are there, as in a binary counter, and what is left at the
/// end from right to left. Holds at most floor(log2 n) + 1 gradient sets. A rank that owns an
/// interval of micro-batches can later add the nodes that lie in it.
class GradientTree {
 public:
  /// `total` is where the sum ends up; `make` gives further sets of the same tensors.
  GradientTree(Policy policy, NamedTensors total, std::function<NamedTensors()> make);

  /// The set into which the next micro-batch's gradient has to be written.
  const NamedTensors& leaf();
  /// The leaf has been written.
  void push();
  /// Every micro-batch has been pushed: their sum is in `total`, and the tree is empty again.
  void finish();

 private:
  void merge_last_two();

  Policy policy_;
  std::function<NamedTensors()> make_;
  std::vector<NamedTensors>
      sets_;                 ///< a stack of subtrees, the leftmost first; sets_[0] is `total`
  std::vector<int> levels_;  ///< height of each subtree on the stack
};

}  // namespace olmo::train
