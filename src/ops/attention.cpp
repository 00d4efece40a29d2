#include "ops/attention.h"

#include <cmath>

#include <ATen/Parallel.h>

#include "core/error.h"
#include "ops/arguments.h"
#include "ops/isa_table.h"
#include "ops/kernels/attention.h"

namespace olmo::ops {

OLMO_ISA_TABLE(AttentionKernels, attention_kernels)

namespace {

AttentionProblem problem_of(const char* op, const AttentionShape& s, const at::Tensor& qkv,
                            const at::Tensor& out, const at::Tensor& lse) {
  if (s.batch < 0 || s.length < 0 || s.n_heads <= 0 || s.n_kv_heads <= 0 || s.head_dim <= 0 ||
      s.n_heads % s.n_kv_heads != 0) {
    throw Error(ErrorKind::kFailure,
                std::string(op) +
                    ": n_kv_heads must divide n_heads and all sizes be positive, got " +
                    std::to_string(s.n_heads) + " heads, " + std::to_string(s.n_kv_heads) +
                    " kv heads of " + std::to_string(s.head_dim));
  }
  require(op, "qkv", qkv, {s.batch * s.length, (s.n_heads + 2 * s.n_kv_heads) * s.head_dim});
  require(op, "out", out, {s.batch * s.length, s.n_heads * s.head_dim});
  require(op, "lse", lse, {s.batch, s.n_heads, s.length});
  AttentionProblem p{};
  p.batch = s.batch;
  p.length = s.length;
  p.n_heads = s.n_heads;
  p.n_kv_heads = s.n_kv_heads;
  p.head_dim = s.head_dim;
  p.scale = 1.0F / std::sqrt(static_cast<float>(s.head_dim));
  p.qkv = qkv.const_data_ptr<float>();
  p.out = out.mutable_data_ptr<float>();
  p.lse = lse.mutable_data_ptr<float>();
  return p;
}

}  // namespace

void attention(const Policy& policy, const AttentionShape& shape, const at::Tensor& qkv,
               at::Tensor& out, at::Tensor& lse) {
  const auto problem = problem_of("attention", shape, qkv, out, lse);
  const auto& kernels = attention_kernels_for(policy.isa);
  at::parallel_for(0, shape.batch * shape.n_kv_heads, 1, [&](std::int64_t begin, std::int64_t end) {
    kernels.forward(problem, begin, end);
  });
}

void attention_backward(const Policy& policy, const AttentionShape& shape, const at::Tensor& dout,
                        const at::Tensor& qkv, const at::Tensor& out, const at::Tensor& lse,
                        at::Tensor& dqkv) {
  auto problem = problem_of("attention_backward", shape, qkv, out, lse);
  require("attention_backward", "dout", dout, out.sizes());
  require("attention_backward", "dqkv", dqkv, qkv.sizes());
  problem.dout = dout.const_data_ptr<float>();
  problem.dqkv = dqkv.mutable_data_ptr<float>();
  const auto& kernels = attention_kernels_for(policy.isa);
  at::parallel_for(0, shape.batch * shape.n_kv_heads, 1, [&](std::int64_t begin, std::int64_t end) {
    kernels.backward(problem, begin, end);
  });
}

}  // namespace olmo::ops
