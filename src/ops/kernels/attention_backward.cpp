// The backward pass of attention.h, one tile of queries at a time.
#include "ops/kernels/attention_tile.h"
#include "ops/kernels/math.h"

namespace olmo::ops::OLMO_ISA {
namespace {

// Keys whose scores and their gradients are held at a time: the second-level cache has the keys,
// the values and their gradients to keep, too.
constexpr std::int64_t kKeyBlock = 224 / kTileRows * kTileRows;

struct Buffers {
  float *k_panels, *v_panels, *k_rows;            // all keys of the part
  float *dk, *dv;                                 // [key][width]
  float *q_t, *dout_t, *q_rows, *dout_rows, *dq;  // one tile
  float *weights, *dweights;                      // [key][query]
  float *delta, *lse;
  std::int64_t size;
};

template <typename Element>
Buffers carve(const AttentionProblem<Element>& a, float* workspace) {
  const std::int64_t keys = rounded_up(a.length, kTileRows), width = padded_dim(a.head_dim);
  Carver carver{workspace};
  Buffers b{};
  b.k_panels = carver.take(keys * a.head_dim);
  b.v_panels = carver.take(keys * a.head_dim);
  b.k_rows = carver.take(keys * width);
  b.dk = carver.take(keys * width);
  b.dv = carver.take(keys * width);
  b.q_t = carver.take(kQueries * a.head_dim);
  b.dout_t = carver.take(kQueries * a.head_dim);
  b.q_rows = carver.take(kQueries * width);
  b.dout_rows = carver.take(kQueries * width);
  b.dq = carver.take(kQueries * width);
  b.weights = carver.take((kKeyBlock + kQueries) * kQueries);
  b.dweights = carver.take((kKeyBlock + kQueries) * kQueries);
  b.delta = carver.take(kQueries);
  b.lse = carver.take(kQueries);
  b.size = carver.size;
  return b;
}

template <typename Element>
std::int64_t workspace(const AttentionProblem<Element>& a) {
  return carve(a, nullptr).size;
}

template <typename Element>
float row_dot(const Element* x, const Element* y, std::int64_t n) {
  F32x16 lanes = zero();
  for_row(n, [&] OLMO_STEP { lanes = lanes + load_some(x + i, count) * load_some(y + i, count); });
  return tree_sum(lanes);
}

// Where elements are bf16, the gradients of scores are rounded before the scale, and it is the
// gradients of q and k that get it.
template <typename Element>
constexpr bool kScalesLast = sizeof(Element) == sizeof(Bf16);

// Scores become probabilities, and their gradients those of the scores, both rounded to Element;
// entries that are masked stay unspecified.
template <typename Element>
void softmax_backward(const Tile& t, float scale, const float* lse, const float* delta,
                      float* weights, float* dweights) {
  F32x16 top[kQueryVectors], mean[kQueryVectors];
  for (int v = 0; v < kQueryVectors; ++v) {
    top[v] = load(lse + 16 * v);
    mean[v] = load(delta + 16 * v);
  }
  const F32x16 factor = broadcast(scale);
  const std::int64_t keys = t.before + t.diagonal;
  for (std::int64_t j = 0; j < keys; ++j) {
    float* row = weights + j * kQueries;
    float* drow = dweights + j * kQueries;
    const std::int64_t first = j < t.before ? 0 : (j - t.before) / 16;
    for (std::int64_t v = first; v < kQueryVectors; ++v) {
      // No score that is seen is above lse: both are rounded alike, and log(sum) >= 0.
      const F32x16 p = exp_nonpositive(load(row + 16 * v) * factor - top[v]);
      const F32x16 ds = p * (load(drow + 16 * v) - mean[v]);
      store(row + 16 * v, rounded_to<Element>(p));
      store(drow + 16 * v, kScalesLast<Element> ? rounded_to<Element>(ds) : ds * factor);
    }
  }
}

// dst[r][e] = src[r][e] * factor; in fp32, where the scale is in the sums already, without it.
template <typename Element>
void write_gradients(const float* src, std::int64_t width, std::int64_t rows, std::int64_t columns,
                     float factor, Element* dst, std::int64_t stride) {
  const F32x16 scale = broadcast(factor);
  for (std::int64_t r = 0; r < rows; ++r) {
    for_row(columns, [&] OLMO_STEP {
      const F32x16 sum = load(src + r * width + i);
      store_some(dst + r * stride + i, kScalesLast<Element> ? sum * scale : sum, count);
    });
  }
}

template <typename Element>
struct Head {
  const Element *q, *dout, *out;
  const float* lse;
  Element* dq;
  std::int64_t stride, out_stride;  // of rows in qkv and in out
};

template <typename Element>
Head<Element> head_at(const AttentionProblem<Element>& a, std::int64_t sequence, std::int64_t h) {
  const std::int64_t d = a.head_dim, first = sequence * a.length;
  Head<Element> head{};
  head.stride = (a.n_heads + 2 * a.n_kv_heads) * d;
  head.out_stride = a.n_heads * d;
  head.q = a.qkv + first * head.stride + h * d;
  head.dq = a.dqkv + first * head.stride + h * d;
  head.out = a.out + first * head.out_stride + h * d;
  head.dout = a.dout + first * head.out_stride + h * d;
  head.lse = a.lse + (sequence * a.n_heads + h) * a.length;
  return head;
}

/// A tile of queries, the position of the first, and which of the part's keys is the first that one
/// of them sees.
struct Queries {
  Tile tile;
  std::int64_t q0, first_key;
};

// The keys from `key` on: a block of those that all queries of the tile see, the last one with the
// diagonal.
template <typename Element>
void run_keys(const AttentionProblem<Element>& a, const AttentionPart& part, const Queries& queries,
              std::int64_t key, const Buffers& b) {
  const Tile& tile = queries.tile;
  const std::int64_t d = a.head_dim, width = padded_dim(d), left = tile.before - key;
  const Tile t =
      left > kKeyBlock ? Tile{kKeyBlock, 0, tile.queries} : Tile{left, tile.diagonal, tile.queries};
  scores(t, d, b.k_panels + key * d, b.q_t, b.weights);
  hide_unseen(a, part.sequence, t, queries.q0, part.key_begin + key, b.weights);
  scores(t, d, b.v_panels + key * d, b.dout_t, b.dweights);
  softmax_backward<Element>(t, a.scale, b.lse, b.delta, b.weights, b.dweights);
  if (part.dkv) {
    product_over_queries(t, b.weights, b.dout_rows, width, b.dv + key * width);
    product_over_queries(t, b.dweights, b.q_rows, width, b.dk + key * width);
  }
  if (part.dq)
    product_over_keys(t, key > queries.first_key, b.dweights, b.k_rows + key * width, width, b.dq);
}

template <typename Element>
void run_tile(const AttentionProblem<Element>& a, const AttentionPart& part,
              const Head<Element>& head, std::int64_t q0, const Buffers& b) {
  const std::int64_t d = a.head_dim, width = padded_dim(a.head_dim);
  const Tile t = tile_at(part, q0, part.query_end);
  const Queries queries{t, q0, keys_left_behind(a, part, q0)};
  if (queries.first_key == t.before + t.diagonal) return;  // all of the part's keys are behind
  const Element* q = head.q + q0 * head.stride;
  const Element* dout = head.dout + q0 * head.out_stride;
  pack_transposed<kQueries>(q, head.stride, t.queries, d, b.q_t);
  pack_transposed<kQueries>(dout, head.out_stride, t.queries, d, b.dout_t);
  for (std::int64_t i = 0; i < t.queries; ++i) {
    b.delta[i] = row_dot(dout + i * head.out_stride, head.out + (q0 + i) * head.out_stride, d);
    b.lse[i] = head.lse[q0 + i];
  }
  if (part.dkv) {
    copy_rows(q, head.stride, t.queries, d, b.q_rows, width);
    copy_rows(dout, head.out_stride, t.queries, d, b.dout_rows, width);
  }
  for (std::int64_t key = queries.first_key; key == queries.first_key || key < t.before;
       key += kKeyBlock)
    run_keys(a, part, queries, key, b);
  if (part.dq)
    write_gradients(b.dq, width, t.queries, d, a.scale, head.dq + q0 * head.stride, head.stride);
}

template <typename Element>
void run(const AttentionProblem<Element>& a, const AttentionPart& part, float* workspace) {
  const Buffers b = carve(a, workspace);
  const std::int64_t d = a.head_dim, width = padded_dim(a.head_dim),
                     group = a.n_heads / a.n_kv_heads;
  const std::int64_t stride = (a.n_heads + 2 * a.n_kv_heads) * d;
  const std::int64_t keys = part.key_end - part.key_begin;
  const std::int64_t first =
      (part.sequence * a.length + part.key_begin) * stride + (a.n_heads + part.kv_head) * d;
  const Element* k = a.qkv + first;
  const Element* v = k + a.n_kv_heads * d;
  pack_panels(k, stride, keys, d, b.k_panels);
  pack_panels(v, stride, keys, d, b.v_panels);
  if (part.dq) copy_rows(k, stride, keys, d, b.k_rows, width);
  if (part.dkv) {
    for (std::int64_t i = 0; i < keys * width; ++i) b.dk[i] = b.dv[i] = 0.0F;
  }
  for (std::int64_t h = part.kv_head * group; h < (part.kv_head + 1) * group; ++h) {
    const Head<Element> head = head_at(a, part.sequence, h);
    for (std::int64_t q0 = part.query_begin; q0 < part.query_end; q0 += kQueries)
      run_tile(a, part, head, q0, b);
  }
  if (!part.dkv) return;
  if (hides_keys(a)) {
    // Queries that do not see a key may have added zeros, which leave no -0.
    for (std::int64_t i = 0; i < keys * width; ++i) {
      b.dk[i] += 0.0F;
      b.dv[i] += 0.0F;
    }
  }
  Element* dk = a.dqkv + first;
  write_gradients(b.dk, width, keys, d, a.scale, dk, stride);
  write_gradients(b.dv, width, keys, d, 1.0F, dk + a.n_kv_heads * d, stride);
}

}  // namespace

extern const PerElement<AttentionKernels> attention_backward_kernels;
const PerElement<AttentionKernels> attention_backward_kernels = {{workspace, run},
                                                                 {workspace, run}};

}  // namespace olmo::ops::OLMO_ISA
