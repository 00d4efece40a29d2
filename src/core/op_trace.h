#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/hash.h"
#include "core/tensor.h"

namespace olmo {

/// What one operation of a step gave.
struct OpDigest {
  std::string operation;  ///< e.g. "micro_batch.0/forward/blocks.3.attention"
  Digest digest;
};

/// Hashes the outputs of a step's operations in the order of the computation, so that two machines
/// can name the first operation on which they part.
class OpTrace {
 public:
  /// What the names of the operations to come begin with, e.g. "micro_batch.0/forward/".
  void enter(std::string prefix) { prefix_ = std::move(prefix); }
  /// Adds the tensor's elements, as they are when this is called.
  void add(std::string_view operation, const at::Tensor& output);
  void add(std::string_view operation, double value);

  [[nodiscard]] const std::vector<OpDigest>& digests() const { return digests_; }

 private:
  std::string prefix_;
  std::vector<OpDigest> digests_;
};

/// The first operation on which two traces of one step part.
struct TraceDifference {
  std::string operation;
  std::string reason;  ///< "its output differs", or that one trace lacks it
};

/// Nothing if the traces are equal.
std::optional<TraceDifference> first_difference(std::span<const OpDigest> a,
                                                std::span<const OpDigest> b);

}  // namespace olmo
