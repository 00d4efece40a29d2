#pragma once

#include "core/tensor.h"

namespace olmo {

/// One parameter, moment or gradient under OLMo's own name, e.g.
/// `transformer.blocks.0.att_proj.weight`.
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

/// Ordered as the model lists them; tensors share storage with their owner.
using NamedTensors = std::vector<NamedTensor>;

/// E.g. "(2048, 512)"; "()" for one number.
std::string shape_text(std::span<const std::int64_t> shape);

}  // namespace olmo
