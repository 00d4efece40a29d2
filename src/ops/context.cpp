#include "ops/context.h"

#include "core/gpu.h"
#include "core/op_trace.h"

namespace olmo::ops {

Context::Context(const Policy& p)
    : policy(p), stream(p.gpu != nullptr ? p.gpu->stream() : nullptr) {}

Context Context::named(std::string_view operation) const {
  Context context = *this;
  context.name = operation;
  return context;
}

void Context::record(const at::Tensor& output, std::string_view part) const {
  trace->add(std::string(name) + std::string(part), output);
}

}  // namespace olmo::ops
