#include "ops/attention.h"

#include <atomic>
#include <cmath>

#include <ATen/Parallel.h>

#include "core/error.h"
#include "ops/arguments.h"
#include "ops/gpu/launch.h"
#include "ops/isa_table.h"
#include "ops/kernels/attention.h"
#include "ops/workspace.h"

namespace olmo::ops {

OLMO_ISA_TABLE(AttentionKernels, attention_forward_kernels)
OLMO_ISA_TABLE(AttentionKernels, attention_backward_kernels)

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
  p.qkv = kernel_input<float>(qkv);
  p.out = kernel_output<float>(out);
  p.lse = kernel_output<float>(lse);
  return p;
}

// How many pieces each (sequence, key/value head) is cut into: one where there are enough of those
// for the threads, for cutting repeats the packing of keys and, in the backward pass, the scores.
std::int64_t pieces_per_head(const Context& context, const AttentionProblem& p) {
  const auto heads = std::max<std::int64_t>(p.batch * p.n_kv_heads, 1);
  const std::int64_t wanted = context.policy.threads == 1 ? 1 : 2 * context.policy.threads;
  const auto tiles = (p.length + kAttentionTile - 1) / kAttentionTile;
  return std::clamp<std::int64_t>((wanted + heads - 1) / heads, 1,
                                  std::max<std::int64_t>(tiles, 1));
}

// Calls add(sequence, kv_head, begin, end) for every piece, ranges of positions on tile borders,
// late ones first.
template <class Add>
void for_pieces(const AttentionProblem& p, std::int64_t pieces, const Add& add) {
  const auto tiles = (p.length + kAttentionTile - 1) / kAttentionTile;
  for (auto piece = pieces - 1; piece >= 0; --piece) {
    const auto begin = tiles * piece / pieces * kAttentionTile;
    const auto end = std::min(p.length, tiles * (piece + 1) / pieces * kAttentionTile);
    for (std::int64_t sequence = 0; sequence < p.batch; ++sequence) {
      for (std::int64_t head = 0; head < p.n_kv_heads; ++head) add(sequence, head, begin, end);
    }
  }
}

std::vector<AttentionPart> forward_parts(const Context& context, const AttentionProblem& p) {
  std::vector<AttentionPart> parts;
  for_pieces(p, pieces_per_head(context, p), [&](auto sequence, auto head, auto begin, auto end) {
    parts.push_back({sequence, head, begin, end, 0, end, false, false});
  });
  return parts;
}

/// A head in one piece gives dq, dk and dv at once; in several, those of dq and those of dk and dv.
std::vector<AttentionPart> backward_parts(const Context& context, const AttentionProblem& p) {
  const auto pieces = pieces_per_head(context, p);
  std::vector<AttentionPart> parts;
  for_pieces(p, pieces, [&](auto sequence, auto head, auto begin, auto end) {
    if (pieces == 1) {
      parts.push_back({sequence, head, 0, end, 0, end, true, true});
      return;
    }
    parts.push_back({sequence, head, begin, end, 0, end, true, false});
    parts.push_back({sequence, head, begin, p.length, begin, end, false, true});
  });
  return parts;
}

// Threads take the next part when they are free; each output belongs to one part, so their order
// does not matter.
void run_parts(const Context& context, const AttentionKernels& kernels,
               const AttentionProblem& problem, const std::vector<AttentionPart>& parts) {
  const auto floats = static_cast<std::size_t>(kernels.workspace(problem));
  CallWorkspace workspace(context);
  std::atomic<std::size_t> next{0};
  at::parallel_for(0, context.policy.threads, 1, [&](std::int64_t, std::int64_t) {
    float* scratch = workspace.reserve(floats);
    for (auto i = next.fetch_add(1); i < parts.size(); i = next.fetch_add(1))
      kernels.run(problem, parts[i], scratch);
  });
}

/// A tile of queries (or keys) of a head and at most 128 of its output columns each.
std::int64_t gpu_blocks(const AttentionProblem& p, std::int64_t heads) {
  const auto tiles = (p.length + kAttentionTile - 1) / kAttentionTile;
  return tiles * p.batch * heads * ((p.head_dim + 127) / 128);
}

}  // namespace

void attention(const Context& context, const AttentionShape& shape, const at::Tensor& qkv,
               at::Tensor& out, at::Tensor& lse) {
  const auto problem = problem_of("attention", shape, qkv, out, lse);
  if (on_gpu(context, "attention", {qkv, out, lse})) {
    launch(context, gpu_kernels::kAttention, gpu_blocks(problem, problem.n_heads), problem);
  } else {
    run_parts(context, attention_forward_kernels_for(context.policy.isa), problem,
              forward_parts(context, problem));
  }
  context.traced(out);
}

void attention_backward(const Context& context, const AttentionShape& shape, const at::Tensor& dout,
                        const at::Tensor& qkv, const at::Tensor& out, const at::Tensor& lse,
                        at::Tensor& dqkv) {
  auto problem = problem_of("attention_backward", shape, qkv, out, lse);
  require("attention_backward", "dout", dout, out.sizes());
  require("attention_backward", "dqkv", dqkv, qkv.sizes());
  problem.dout = kernel_input<float>(dout);
  problem.dqkv = kernel_output<float>(dqkv);
  if (on_gpu(context, "attention_backward", {dout, qkv, out, lse, dqkv})) {
    launch(context, gpu_kernels::kAttentionDq, gpu_blocks(problem, problem.n_heads), problem);
    launch(context, gpu_kernels::kAttentionDkv, gpu_blocks(problem, problem.n_kv_heads), problem);
  } else {
    run_parts(context, attention_backward_kernels_for(context.policy.isa), problem,
              backward_parts(context, problem));
  }
  context.traced(dqkv);
}

}  // namespace olmo::ops
