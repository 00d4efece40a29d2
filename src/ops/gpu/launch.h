// How an op's .cpp runs its kernel on the policy's GPU.
#pragma once

#include <initializer_list>

#include "core/gpu.h"
#include "ops/context.h"
#include "ops/gpu/kernel_list.h"
#include "ops/gpu/program.h"

namespace olmo::ops {

/// True where the policy has a GPU; then every tensor that is defined must lie in its memory, else
/// Error(kFailure) "op: …".
bool on_gpu(const Context& context, const char* op, std::initializer_list<at::Tensor> tensors);

/// Blocks of a kernel whose groups of sixteen threads each take one of `count` rows; 64 elements;
/// or 16 columns. Or whose threads each take one of `count` elements.
constexpr std::int64_t blocks_of_rows(std::int64_t count) { return (count + 15) / 16; }
constexpr std::int64_t blocks_of_elements(std::int64_t count) { return (count + 1023) / 1024; }
constexpr std::int64_t blocks_of_columns(std::int64_t count) { return (count + 255) / 256; }
constexpr std::int64_t blocks_of_threads(std::int64_t count) { return (count + 255) / 256; }

/// Runs the kernel in `blocks` blocks on the context's stream and waits for it.
template <class... P>
void launch(const Context& context, const GpuKernel<P...>& kernel, std::int64_t blocks,
            std::type_identity_t<P>... arguments) {
  void* pointers[] = {const_cast<void*>(static_cast<const void*>(&arguments))...};
  context.policy.gpu->launch(context.stream, gpu_program(), kernel.name, blocks, pointers);
}

}  // namespace olmo::ops
