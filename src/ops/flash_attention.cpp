#include "ops/flash_attention.h"

#include <tuple>

#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_backward.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/empty.h>

namespace olmo::ops {
namespace {

constexpr double kNoDropout = 0.0;
constexpr bool kCausal = true;

/// `heads` heads of packed rows, from head number `first` on, as (batch, heads, length, head_dim).
at::Tensor heads_of(const at::Tensor& rows, const AttentionShape& s, std::int64_t first,
                    std::int64_t heads) {
  const auto columns = rows.size(1) / s.head_dim;
  return rows.view({s.batch, s.length, columns, s.head_dim})
      .narrow(2, first, heads)
      .transpose(1, 2);
}

/// What the kernels are given of a tensor: see the header for bf16 on the CPU.
at::Tensor as_multiplied(const Policy& policy, const at::Tensor& t) {
  return t.is_cpu() && !policy.multiplies_bf16 ? t.to(at::kFloat) : t;
}

struct Heads {
  at::Tensor q, k, v;

  Heads(const at::Tensor& qkv, const AttentionShape& s)
      : q(heads_of(qkv, s, 0, s.n_heads)),
        k(heads_of(qkv, s, s.n_heads, s.n_kv_heads)),
        v(heads_of(qkv, s, s.n_heads + s.n_kv_heads, s.n_kv_heads)) {}
};

}  // namespace

bool has_flash_attention(const AttentionShape& shape, const at::Tensor& qkv) {
  if (qkv.numel() == 0 || shape.is_sliding() || shape.document_starts.defined()) return false;
  if (qkv.is_cpu()) return true;
  return qkv.scalar_type() == at::kBFloat16 && shape.head_dim % 8 == 0 && shape.head_dim <= 256;
}

void flash_attention(const Policy& policy, const AttentionShape& shape, const at::Tensor& qkv,
                     const at::Tensor& out, const at::Tensor& lse) {
  const Heads in(as_multiplied(policy, qkv), shape);
  at::Tensor heads, sums;
  if (qkv.is_cpu()) {
    std::tie(heads, sums) =
        at::_scaled_dot_product_flash_attention_for_cpu(in.q, in.k, in.v, kNoDropout, kCausal);
  } else {
    const auto result =
        at::_scaled_dot_product_flash_attention(in.q, in.k, in.v, kNoDropout, kCausal);
    heads = std::get<0>(result);
    sums = std::get<1>(result);
  }
  heads_of(out, shape, 0, shape.n_heads).copy_(heads);
  lse.copy_(sums);
}

void flash_attention_backward(const Policy& policy, const AttentionShape& shape,
                              const at::Tensor& dout, const at::Tensor& qkv, const at::Tensor& out,
                              const at::Tensor& lse, const at::Tensor& dqkv) {
  const Heads in(as_multiplied(policy, qkv), shape), gradients(dqkv, shape);
  const auto dheads = heads_of(as_multiplied(policy, dout), shape, 0, shape.n_heads);
  const auto heads = heads_of(as_multiplied(policy, out), shape, 0, shape.n_heads);
  at::Tensor dq, dk, dv;
  if (qkv.is_cpu()) {
    std::tie(dq, dk, dv) = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        dheads, in.q, in.k, in.v, heads, lse, kNoDropout, kCausal);
  } else {
    // Sequences of one length need no list of their ends, and without dropout there is no state of
    // a random generator.
    const at::Tensor no_ends, no_state = at::empty({}, qkv.options().dtype(at::kLong));
    std::tie(dq, dk, dv) = at::_scaled_dot_product_flash_attention_backward(
        dheads, in.q, in.k, in.v, heads, lse, no_ends, no_ends, shape.length, shape.length,
        kNoDropout, kCausal, no_state, no_state);
  }
  gradients.q.copy_(dq);
  gradients.k.copy_(dk);
  gradients.v.copy_(dv);
}

}  // namespace olmo::ops
