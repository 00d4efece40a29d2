// Attention by LibTorch's flash kernels, for Numerics::kFast: on the CPU, on NVIDIA and on AMD
// GPUs. Tensors as in ops/attention.h. Nothing is read or written by the host.
#pragma once

#include "core/compute/tensor.h"
#include "ops/attention.h"

namespace olmo::ops {

/// Whether there is a kernel for these tensors. There is none for sliding attention and within
/// documents. On the CPU there is one for fp32 and bf16 and every head_dim; on a GPU only one for
/// bf16, where head_dim is a multiple of 8 and at most 256.
bool has_flash_attention(const AttentionShape& shape, const at::Tensor& qkv);

/// attention() and attention_backward() where has_flash_attention(). The kernels read qkv where it
/// lies; their results are copied into out, lse and dqkv. Key/value heads are not repeated. On the
/// CPU bf16 is widened for the kernel of fp32 and its results are rounded, unless the policy
/// multiplies bf16 as it is: elsewhere LibTorch's kernel of bf16 takes twice as long with AVX-512,
/// and up to nine times with AVX2.
void flash_attention(const Policy& policy, const AttentionShape& shape, const at::Tensor& qkv,
                     const at::Tensor& out, const at::Tensor& lse);
void flash_attention_backward(const Policy& policy, const AttentionShape& shape,
                              const at::Tensor& dout, const at::Tensor& qkv, const at::Tensor& out,
                              const at::Tensor& lse, const at::Tensor& dqkv);

}  // namespace olmo::ops
