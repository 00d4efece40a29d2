#include "core/tensor.h"

#include <ATen/ops/empty.h>

namespace olmo {

at::Tensor new_tensor(at::IntArrayRef shape, at::ScalarType type) {
  return at::empty(shape, at::TensorOptions().dtype(type).device(at::kCPU));
}

}  // namespace olmo
