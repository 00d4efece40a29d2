// The forward pass of attention.h, one tile of queries at a time.
#include "ops/kernels/attention.h"

#include "ops/kernels/attention_tile.h"
#include "ops/kernels/math.h"

namespace olmo::ops::OLMO_ISA {
namespace {

struct Buffers {
  float *k_panels, *v_rows, *q_t, *weights, *out;
  float* lanes;  // [16][query]: the sixteen partial sums of each row
  std::int64_t size;
};

Buffers carve(const AttentionProblem& a, float* workspace) {
  const std::int64_t keys = rounded_up(a.length, kTileRows), width = padded_dim(a);
  Carver carver{workspace};
  Buffers b{};
  b.k_panels = carver.take(keys * a.head_dim);
  b.v_rows = carver.take(keys * width);
  b.q_t = carver.take(kQueries * a.head_dim);
  b.weights = carver.take(keys * kQueries);
  b.out = carver.take(kQueries * width);
  b.lanes = carver.take(16 * kQueries);
  b.size = carver.next - workspace;
  return b;
}

std::int64_t workspace(const AttentionProblem& a) { return carve(a, nullptr).size; }

// The largest visible score of each query, times scale: scaling by a positive number keeps the
// order.
void row_maxima(const Tile& t, float scale, const float* scores_of_keys,
                F32x16 (&top)[kQueryVectors]) {
  const F32x16 lane = load(kLane), lowest = broadcast(-__builtin_inff());
  for (auto& x : top) x = lowest;
  for (std::int64_t j = 0; j < t.before; ++j) {
    const float* row = scores_of_keys + j * kQueries;
#pragma GCC unroll 4
    for (int v = 0; v < kQueryVectors; ++v) top[v] = max(load(row + 16 * v), top[v]);
  }
  for (std::int64_t j = 0; j < t.diagonal; ++j) {
    const float* row = scores_of_keys + (t.before + j) * kQueries;
    for (std::int64_t v = j / 16; v < kQueryVectors; ++v) {
      const Mask16 seen = lane >= broadcast(static_cast<float>(j - 16 * v));
      top[v] = max(select(seen, load(row + 16 * v), lowest), top[v]);
    }
  }
  for (auto& x : top) x = x * broadcast(scale);
}

// exp(score - top) in place, and its partial sums: key j belongs to lane j mod 16. Keys count from
// 0, for the forward pass sees them all.
void exponentials(const Tile& t, float scale, float* weights, const F32x16 (&top)[kQueryVectors],
                  float* lanes) {
  const F32x16 lane = load(kLane), factor = broadcast(scale);
  for (std::int64_t i = 0; i < 16 * kQueries; i += 16) store(lanes + i, zero());
  for (std::int64_t j = 0; j < t.before; ++j) {
    float* row = weights + j * kQueries;
    float* sums = lanes + j % 16 * kQueries;
#pragma GCC unroll 4
    for (int v = 0; v < kQueryVectors; ++v) {
      const F32x16 p = exp(load(row + 16 * v) * factor - top[v]);
      store(row + 16 * v, p);
      store(sums + 16 * v, load(sums + 16 * v) + p);
    }
  }
  for (std::int64_t j = 0; j < t.diagonal; ++j) {
    float* row = weights + (t.before + j) * kQueries;
    float* sums = lanes + (t.before + j) % 16 * kQueries;
    for (std::int64_t v = j / 16; v < kQueryVectors; ++v) {
      const Mask16 seen = lane >= broadcast(static_cast<float>(j - 16 * v));
      const F32x16 p = select(seen, exp(load(row + 16 * v) * factor - top[v]), zero());
      store(row + 16 * v, p);
      store(sums + 16 * v, load(sums + 16 * v) + p);
    }
  }
}

// Softmax weights without their divisor. Row 0 of `lanes` becomes the divisors, row 1 the rows'
// log-sum-exp.
void softmax(const Tile& t, float scale, float* weights, float* lanes) {
  F32x16 top[kQueryVectors];
  row_maxima(t, scale, weights, top);
  exponentials(t, scale, weights, top, lanes);
  for (std::int64_t half = 8; half > 0; half /= 2) {
    for (std::int64_t i = 0; i < half * kQueries; i += 16) {
      store(lanes + i, load(lanes + i) + load(lanes + i + half * kQueries));
    }
  }
  for (int v = 0; v < kQueryVectors; ++v) {
    store(lanes + kQueries + 16 * v, top[v] + log(load(lanes + 16 * v)));
  }
}

void write_rows(const float* rows, std::int64_t width, const float* divisors, const Tile& t,
                std::int64_t columns, float* out, std::int64_t out_stride) {
  for (std::int64_t i = 0; i < t.queries; ++i) {
    const F32x16 divisor = broadcast(divisors[i]);
    for (std::int64_t e = 0; e < columns; e += 16) {
      store_n(out + i * out_stride + e, load(rows + i * width + e) / divisor,
              smaller(16, columns - e));
    }
  }
}

void run(const AttentionProblem& a, const AttentionPart& part, float* workspace) {
  const Buffers buffers = carve(a, workspace);
  const std::int64_t d = a.head_dim, width = padded_dim(a), group = a.n_heads / a.n_kv_heads;
  const std::int64_t stride = (a.n_heads + 2 * a.n_kv_heads) * d, out_stride = a.n_heads * d;
  const float* qkv = a.qkv + part.sequence * a.length * stride;
  const float* k = qkv + (a.n_heads + part.kv_head) * d;
  pack_panels(k, stride, part.key_end, d, buffers.k_panels);
  copy_rows(k + a.n_kv_heads * d, stride, part.key_end, d, buffers.v_rows, width);
  for (std::int64_t h = part.kv_head * group; h < (part.kv_head + 1) * group; ++h) {
    for (std::int64_t q0 = part.query_begin; q0 < part.query_end; q0 += kQueries) {
      const Tile t = tile_at(part, q0, part.query_end);
      pack_transposed<kQueries>(qkv + q0 * stride + h * d, stride, t.queries, d, buffers.q_t);
      scores(t, d, buffers.k_panels, buffers.q_t, buffers.weights);
      softmax(t, a.scale, buffers.weights, buffers.lanes);
      product_over_keys(t, buffers.weights, buffers.v_rows, width, buffers.out);
      write_rows(buffers.out, width, buffers.lanes, t, d,
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
