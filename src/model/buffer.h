#pragma once

#include <initializer_list>

#include "core/tensor.h"

namespace olmo::model {

/// Memory that is allocated once, grows when a larger shape is asked for, and is used again: fresh
/// pages cost more than most operations on them.
class Buffer {
 public:
  explicit Buffer(at::ScalarType dtype = at::kFloat) : dtype_(dtype) {}

  /// A contiguous tensor over the start of the memory; contents undefined after growth. Earlier
  /// views stay valid, but may then be of the old memory.
  at::Tensor shaped(std::initializer_list<std::int64_t> shape);
  /// The last shaped() tensor.
  [[nodiscard]] const at::Tensor& get() const { return view_; }

 private:
  at::ScalarType dtype_;
  at::Tensor memory_;
  at::Tensor view_;
};

/// Contiguous CPU tensor with undefined contents; asks the kernel for huge pages if it is large.
at::Tensor empty_tensor(at::IntArrayRef shape, at::ScalarType dtype);

}  // namespace olmo::model
