#include "ops/gpu/launch.h"

#include "core/error.h"

namespace olmo::ops {

bool on_gpu(const Context& context, const char* op, std::initializer_list<at::Tensor> tensors) {
  if (context.policy.gpu == nullptr) return false;
  for (const auto& tensor : tensors) {
    if (!tensor.defined() || tensor.numel() == 0) continue;
    if (memory_device(tensor) == context.policy.device) continue;
    throw Error(ErrorKind::kFailure, std::string(op) + ": a tensor lies in memory that " +
                                         context.policy.gpu->name() +
                                         " does not share with the host");
  }
  return true;
}

}  // namespace olmo::ops
