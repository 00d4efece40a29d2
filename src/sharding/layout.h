// Who holds which part of a unit's parameters, gradients and moments.
//
// A *unit* is what FSDP wraps: a block, or the root (embedding, head, last norm). Its tensors lie
// one after another in a flat buffer. Each begins at a multiple of a *chunk*, with zeros before the
// next; the buffer ends at a multiple of W chunks. So it falls into W *slices* of equal size, whole
// chunks each, and rank r owns slice r. Gathers and exchanges have equal sizes on all ranks, and
// the sum of squares of a tensor needs only the sums of its chunks (ops/optimizer_update.h),
// whoever made them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/compute/named_tensors.h"
#include "model/parameters.h"

namespace olmo::sharding {

/// Elements; those of a block in the definition of a tensor's norm.
inline constexpr std::int64_t kChunk = 4096;

/// A tensor's place in its unit's buffer, in elements.
struct Place {
  std::string name;
  std::vector<std::int64_t> shape;
  model::ParameterRole role;
  std::int64_t begin = 0;  ///< a multiple of kChunk
  std::int64_t size = 0;

  [[nodiscard]] std::int64_t end() const { return begin + size; }
  [[nodiscard]] std::int64_t chunks() const { return (size + kChunk - 1) / kChunk; }
};

/// The part of a tensor that lies in a slice: elements [begin, begin + size) of the flattened
/// tensor.
struct Part {
  std::size_t tensor = 0;        ///< index into UnitLayout::places
  std::int64_t begin = 0;        ///< in the tensor
  std::int64_t slice_begin = 0;  ///< in the slice
  std::int64_t size = 0;
};

/// A unit's buffer and its slices.
class UnitLayout {
 public:
  UnitLayout(const std::vector<model::ParameterSpec>& specs, int ranks);

  [[nodiscard]] const std::vector<Place>& places() const { return places_; }
  [[nodiscard]] int ranks() const { return ranks_; }
  /// Elements of a slice: a multiple of kChunk, the same for every rank.
  [[nodiscard]] std::int64_t slice() const { return slice_; }
  /// Elements of the buffer.
  [[nodiscard]] std::int64_t buffer() const { return slice_ * ranks_; }
  /// Those of each tensor that rank `rank` owns, in order; tensors of which it owns nothing are
  /// left out.
  [[nodiscard]] std::vector<Part> parts(int rank) const;

  /// The tensors as views of a buffer, named and shaped as the parameters.
  [[nodiscard]] NamedTensors views(const at::Tensor& buffer) const;

 private:
  std::vector<Place> places_;
  int ranks_;
  std::int64_t slice_ = 0;
};

}  // namespace olmo::sharding
