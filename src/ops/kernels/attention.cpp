// The forward pass of attention.h, one tile of queries at a time.
#include "ops/kernels/attention.h"

#include "ops/kernels/attention_forward.h"

namespace olmo::ops::OLMO_ISA {
namespace {

struct Buffers {
  float *k_panels, *v_rows, *q_t, *weights, *out;
  float* lanes;
  float* seen;  // 1..kQueries
  std::int64_t size;
};

Buffers carve(const AttentionProblem& a, float* workspace) {
  const std::int64_t keys = rounded_up(a.length, kTileRows), width = padded_dim(a.head_dim);
  Carver carver{workspace};
  Buffers b{};
  b.k_panels = carver.take(keys * a.head_dim);
  b.v_rows = carver.take(keys * width);
  b.q_t = carver.take(kQueries * a.head_dim);
  b.weights = carver.take(keys * kQueries);
  b.out = carver.take(kQueries * width);
  b.lanes = carver.take(16 * kQueries);
  b.seen = carver.take(kQueries);
  b.size = carver.next - workspace;
  return b;
}

std::int64_t workspace(const AttentionProblem& a) { return carve(a, nullptr).size; }

Sight sight_of(const Tile& t, const float* seen) {
  Sight sight{t.before, t.diagonal, seen, {}};
  for (int v = 0; v < kQueryVectors; ++v) sight.most_seen[v] = 16 * (v + 1);
  return sight;
}

void run(const AttentionProblem& a, const AttentionPart& part, float* workspace) {
  const Buffers buffers = carve(a, workspace);
  const std::int64_t d = a.head_dim, width = padded_dim(d), group = a.n_heads / a.n_kv_heads;
  const std::int64_t stride = (a.n_heads + 2 * a.n_kv_heads) * d, out_stride = a.n_heads * d;
  const float* qkv = a.qkv + part.sequence * a.length * stride;
  const float* k = qkv + (a.n_heads + part.kv_head) * d;
  pack_panels(k, stride, part.key_end, d, buffers.k_panels);
  copy_rows(k + a.n_kv_heads * d, stride, part.key_end, d, buffers.v_rows, width);
  for (std::int64_t i = 0; i < kQueries; ++i) buffers.seen[i] = static_cast<float>(i + 1);
  for (std::int64_t h = part.kv_head * group; h < (part.kv_head + 1) * group; ++h) {
    for (std::int64_t q0 = part.query_begin; q0 < part.query_end; q0 += kQueries) {
      const Tile t = tile_at(part, q0, part.query_end);
      pack_transposed<kQueries>(qkv + q0 * stride + h * d, stride, t.queries, d, buffers.q_t);
      scores(t, d, buffers.k_panels, buffers.q_t, buffers.weights);
      softmax(sight_of(t, buffers.seen), t.queries, a.scale, buffers.weights, buffers.lanes);
      product_over_keys(t, buffers.weights, buffers.v_rows, width, buffers.out);
      write_rows(buffers.out, width, buffers.lanes, t.queries, d,
                 a.out + (part.sequence * a.length + q0) * out_stride + h * d, out_stride);
      float* lse = a.lse + (part.sequence * a.n_heads + h) * a.length + q0;
      for (std::int64_t i = 0; i < t.queries; ++i) lse[i] = buffers.lanes[kQueries + i];
    }
  }
}

}  // namespace

extern const AttentionKernels attention_forward_kernels;
const AttentionKernels attention_forward_kernels = {workspace, run};

}  // namespace olmo::ops::OLMO_ISA
