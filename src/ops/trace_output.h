#pragma once

#include <string_view>

#include "core/compute/tensor.h"
#include "core/trace/op_trace.h"
#include "ops/context.h"

namespace olmo::ops {

/// Adds the elements of `output`, fp32 or bf16, to a trace, wherever they lie. A GPU sums its own
/// up; a trace of TraceFormat::kSha256, as old records have, copies them to the host.
void trace_output(const Context& context, OpTrace& trace, std::string_view operation,
                  const at::Tensor& output);

}  // namespace olmo::ops
