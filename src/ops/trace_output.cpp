#include "ops/trace_output.h"

#include "core/compute/named_tensors.h"
#include "core/trace/trace_sum.h"
#include "ops/dispatch.h"

namespace olmo::ops {
namespace {

std::vector<TraceSums> sums_on_device(const Context& context, const at::Tensor& output) {
  const auto size = static_cast<std::int64_t>(output.nbytes());
  const std::int64_t pieces = trace_pieces(size);
  const at::Tensor on_device =
      new_tensor({pieces, kTraceSums}, tensors_of(context.policy, at::kLong));
  launch(context, gpu_kernels::kTraceSums, blocks_of_rows(pieces),
         kernel_array<std::uint8_t>(output), size,
         reinterpret_cast<std::uint64_t*>(kernel_output<std::int64_t>(on_device)));
  const at::Tensor on_host = to_host(context.policy, on_device);
  std::vector<TraceSums> sums(static_cast<std::size_t>(pieces));
  std::ranges::copy(host_bytes(on_host), std::as_writable_bytes(std::span(sums)).begin());
  return sums;
}

}  // namespace

void trace_output(const Context& context, OpTrace& trace, std::string_view operation,
                  const at::Tensor& output) {
  if (output.is_cpu() || trace.format() != TraceFormat::kSums) {
    trace.add(operation, to_host(context.policy, output));
    return;
  }
  const at::Tensor dense = output.contiguous();
  trace.add(operation, dense.nbytes(), sums_on_device(context, dense));
}

}  // namespace olmo::ops
