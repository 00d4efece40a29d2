// What an operation's .cpp is made with: checks of its arguments, so that a wrong shape becomes an
// error with a sentence instead of a crash; and the way to its kernels, on the CPU and on a GPU.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <vector>

#include "core/compute/gpu.h"
#include "core/compute/parallel.h"
#include "core/compute/policy.h"
#include "core/compute/tensor.h"
#include "ops/context.h"
#include "ops/gpu/kernel_list.h"

/// How an op's .cpp reaches the copies of its kernel that olmo_isa_kernels compiles: declares
/// `const Type name` of each instruction set's namespace (defined by a file in kernels/)
/// and the function `const Type& name##_for(Isa)` that picks one. Use it inside namespace olmo::ops
/// of the op's .cpp, or in shared_kernels.h for what several operations take.
#if defined(__x86_64__)
#define OLMO_ISA_TABLE(Type, name)                               \
  namespace isa_plain {                                          \
  extern const Type name;                                        \
  }                                                              \
  namespace isa_avx2 {                                           \
  extern const Type name;                                        \
  }                                                              \
  namespace isa_avx512 {                                         \
  extern const Type name;                                        \
  }                                                              \
  static inline const Type& name##_for(Isa isa) {                \
    if (isa == Isa::kAvx512) return isa_avx512::name;            \
    return isa == Isa::kAvx2 ? isa_avx2::name : isa_plain::name; \
  }
#else
#define OLMO_ISA_TABLE(Type, name) \
  namespace isa_plain {            \
  extern const Type name;          \
  }                                \
  static inline const Type& name##_for(Isa) { return isa_plain::name; }
#endif

namespace olmo::ops {

/// `t` must be a contiguous tensor of `type` with these sizes; throws Error(kFailure) "op: name
/// …" otherwise.
void require(const char* op, const char* name, const at::Tensor& t, at::IntArrayRef sizes,
             at::ScalarType type = at::kFloat);

/// As require, of any sizes.
void require_contiguous(const char* op, const char* name, const at::Tensor& t,
                        at::ScalarType type = at::kFloat);

/// As require, of either type.
void require_fp32_or_bf16(const char* op, const char* name, const at::Tensor& t,
                          at::IntArrayRef sizes);
inline bool is_bf16(const at::Tensor& t) { return t.defined() && t.scalar_type() == at::kBFloat16; }
/// The type of the first of an operation's tensors, which the others must share.
inline at::ScalarType fp32_or_bf16(const at::Tensor& t) {
  return is_bf16(t) ? at::kBFloat16 : at::kFloat;
}

/// `t` must be a tensor (rows, columns), fp32 or bf16, with dense rows, at least `columns`
/// apart.
void require_rows(const char* op, const char* name, const at::Tensor& t, std::int64_t rows,
                  std::int64_t columns);

/// `t` must be defined and have two dimensions (for a call whose sizes come from it).
void require_matrix(const char* op, const char* name, const at::Tensor& t);

/// Where a kernel finds the elements of a tensor, in the memory of the device that the operation
/// runs on. What the host itself reads or writes goes through core/compute/named_tensors.h.
template <class T>
const T* kernel_input(const at::Tensor& t) {
  if constexpr (std::is_same_v<T, Bf16>) {
    return reinterpret_cast<const Bf16*>(t.const_data_ptr<at::BFloat16>());
  } else {
    return t.const_data_ptr<T>();
  }
}
template <class T>
T* kernel_output(const at::Tensor& t) {
  if constexpr (std::is_same_v<T, Bf16>) {
    return reinterpret_cast<Bf16*>(t.mutable_data_ptr<at::BFloat16>());
  } else {
    return t.mutable_data_ptr<T>();
  }
}
inline const Bf16* kernel_input_bf16(const at::Tensor& t) { return kernel_input<Bf16>(t); }

/// Calls work.operator()<Element>() with the type of a tensor's elements for kernels: float or
/// Bf16.
template <class Work>
void for_element_type(const at::Tensor& t, const Work& work) {
  if (is_bf16(t)) {
    work.template operator()<Bf16>();
  } else {
    work.template operator()<float>();
  }
}

/// Rows a thread takes at least, so that small work is not split: about 16 Ki elements.
std::int64_t row_grain(std::int64_t columns);

/// How many of the policy's threads are worth their waking for so many floating-point operations.
int useful_threads(const Policy& policy, std::int64_t operations);

/// True where the policy has a GPU. Every tensor that is defined must lie in the memory of the
/// policy, else Error(kFailure) "op: …".
bool on_gpu(const Context& context, const char* op, std::initializer_list<at::Tensor> tensors);

/// Blocks of a kernel whose groups of sixteen threads each take one of `count` rows, a piece of
/// one, or 64 elements; whose blocks each take 16 columns; or whose threads each take one of
/// `count` elements.
constexpr std::int64_t blocks_of_rows(std::int64_t count) { return (count + 15) / 16; }
constexpr std::int64_t blocks_of_pieces(std::int64_t rows, std::int64_t columns,
                                        std::int64_t piece) {
  return blocks_of_rows(rows * pieces_of_row(columns, piece));
}
constexpr std::int64_t blocks_of_elements(std::int64_t count) { return (count + 1023) / 1024; }
constexpr std::int64_t blocks_of_columns(std::int64_t count) { return (count + 15) / 16; }
constexpr std::int64_t blocks_of_threads(std::int64_t count) { return (count + 255) / 256; }

/// The source text of gpu/kernels.cu and of all that it includes, which the binary carries.
GpuProgram gpu_program();

/// Queues the kernel in `blocks` blocks on the context's stream; errors show where the host waits
/// (core/compute/gpu.h).
template <class... P>
void launch(const Context& context, const GpuKernel<P...>& kernel, std::int64_t blocks,
            std::type_identity_t<P>... arguments) {
  void* pointers[] = {const_cast<void*>(static_cast<const void*>(&arguments))...};
  context.policy.gpu->launch(context.stream, gpu_program(), kernel.name, context.name, blocks,
                             pointers);
}

/// Runs `kernel` on the elements of tensors of `count` elements each; on a GPU `gpu_kernel`.
template <class Kernel, class GpuKernel, class... Arguments>
void run_on_elements(const char* op, const Context& context,
                     std::initializer_list<at::Tensor> tensors, Kernel kernel,
                     const GpuKernel& gpu_kernel, std::int64_t blocks, std::int64_t count,
                     Arguments... arguments) {
  if (on_gpu(context, op, tensors)) {
    launch(context, gpu_kernel, blocks, arguments..., count);
  } else {
    parallel_for(0, count, row_grain(1),
                 [&](std::int64_t begin, std::int64_t end) { kernel(arguments..., begin, end); });
  }
}

/// A copy of the host's `bytes` in the memory of the context's device, and its start there for a
/// kernel.
at::Tensor device_copy(const Context& context, std::span<const std::byte> bytes);
template <class T>
const T* kernel_array(const at::Tensor& copy) {
  return static_cast<const T*>(copy.const_data_ptr());
}

/// As launch, of a kernel that begins with an array and its length, of which it gets a copy.
/// Nothing happens where there are no blocks.
template <class T, class... P>
void launch_over(const Context& context, const GpuKernel<const T*, std::int64_t, P...>& kernel,
                 std::int64_t blocks, const std::vector<T>& array,
                 std::type_identity_t<P>... arguments) {
  if (blocks == 0) return;
  const at::Tensor copy = device_copy(context, std::as_bytes(std::span(array)));
  launch(context, kernel, blocks, kernel_array<T>(copy), static_cast<std::int64_t>(array.size()),
         arguments...);
}

}  // namespace olmo::ops
