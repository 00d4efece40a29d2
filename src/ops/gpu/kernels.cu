// Every kernel for GPUs: the kernel files of the CPU, compiled with one thread for each of sixteen
// lanes, and an entry point for each function. gpu/kernel_list.h names them for the host. Compiled
// at run time (core/compute/gpu.h) from the text in the binary; by the tests as C++.
#if defined(__HIP__)
#pragma clang force_cuda_host_device begin
#endif

#include "ops/gpu/attention_backward.h"
#include "ops/gpu/forest.h"
#include "ops/gpu/gemm.h"
#include "ops/gpu/trace_sums.h"
#include "ops/kernels/pointwise.cpp"
#include "ops/kernels/row_ops.cpp"
#include "ops/kernels/tensor_list.h"
// After those, whose definitions they take:
#include "ops/gpu/column_sums.h"
#include "ops/gpu/fours.h"

namespace olmo::ops::OLMO_ISA {
namespace {

constexpr int kThreads = 256;        // of a block; 16 groups
constexpr std::int64_t kChunk = 64;  // elements of a group

/// Elements [begin, end) of this group.
struct Chunk {
  std::int64_t begin, end;
};

/// The group's chunk of n elements, if chunk 0 is the first group's of block `first`; empty (begin
/// == end) beyond them.
OLMO_INLINE Chunk chunk_of(std::int64_t n, std::int64_t size, std::int64_t first = 0) {
  const std::int64_t begin = (gpu::group_index(kThreads) - first * (kThreads / 16)) * size;
  if (begin >= n) return {n, n};
  return {begin, begin + size < n ? begin + size : n};
}
OLMO_INLINE Chunk elements(std::int64_t n) { return chunk_of(n, kChunk); }
OLMO_INLINE Chunk row(std::int64_t rows) { return chunk_of(rows, 1); }

/// The group's piece of a row: `size` columns, 0 beyond the rows.
struct RowPiece {
  std::int64_t row, begin, size;
};
OLMO_INLINE RowPiece row_piece(std::int64_t rows, std::int64_t columns, std::int64_t size) {
  const std::int64_t pieces = pieces_of_row(columns, size);
  const std::int64_t number = gpu::group_index(kThreads);
  if (number >= rows * pieces) return {0, 0, 0};
  const std::int64_t begin = number % pieces * size;
  return {number / pieces, begin, columns - begin < size ? columns - begin : size};
}

/// Elements of a tensor whose first chunk is block `first`.
OLMO_INLINE Chunk update_chunk(std::int64_t n, std::int64_t first) {
  static_assert(kUpdateChunk == kChunk * (kThreads / 16));
  return chunk_of(n, kChunk, first);
}

/// This thread's element.
OLMO_INLINE std::int64_t element() { return gpu::block_index() * kThreads + gpu::thread_index(); }

template <typename X, typename Y>
OLMO_INLINE void add_chunk(const X* x, const Y* y, X* out, Chunk c) {
  const auto sum = [](F32x16 a, F32x16 b) __attribute__((always_inline)) { return a + b; };
  map(c.end - c.begin, sum, out + c.begin, x + c.begin, y + c.begin);
}

template <typename Element>
OLMO_INLINE void swiglu_piece(const Element* u, Element* y, std::int64_t rows,
                              std::int64_t columns) {
  const RowPiece p = row_piece(rows, columns, kSwigluPiece);
  const Element* up = u + p.row * 2 * columns + p.begin;
  map(p.size, gated<Element>, y + p.row * columns + p.begin, up + columns, up);
}

template <typename Element>
OLMO_INLINE void swiglu_backward_piece(const Element* dy, const Element* u, Element* du, Element* y,
                                       std::int64_t rows, std::int64_t columns) {
  const RowPiece p = row_piece(rows, columns, kSwigluPiece);
  const std::int64_t first = p.row * 2 * columns + p.begin, of_y = p.row * columns + p.begin;
  swiglu_gradients(p.size, du + first, du + first + columns, y + of_y, dy + of_y, u + first,
                   u + first + columns);
}

template <typename Element>
OLMO_INLINE void activation_chunk(Activation kind, const Element* u, Element* y, Chunk c) {
  with_rule(kind, [&](auto rule) __attribute__((always_inline)) {
    map(c.end - c.begin, decltype(rule)::value, y + c.begin, u + c.begin);
  });
}

/// y first: du may be u.
template <typename Element>
OLMO_INLINE void activation_backward_chunk(Activation kind, const Element* dy, const Element* u,
                                           Element* du, Element* y, Chunk c) {
  activation_chunk(kind, u, y, c);
  with_rule(kind, [&](auto rule) __attribute__((always_inline)) {
    map(c.end - c.begin, decltype(rule)::gradient, du + c.begin, dy + c.begin, u + c.begin);
  });
}

template <typename Element>
OLMO_INLINE void rope_piece(const RopeArgs<Element>& args, float sign, std::int64_t rows) {
  const RowPiece p = row_piece(rows, args.heads, kRopePiece);
  if (p.size > 0) rope_by_fours(args, sign, p.row, p.begin, p.size);
}

template <typename Element>
OLMO_INLINE void embedding_backward_piece(const EmbeddingGradient<Element>& gradient,
                                          std::int64_t ids) {
  const RowPiece p = row_piece(ids, gradient.columns, kEmbeddingPiece);
  if (p.size > 0) embedding_gradient(gradient, p.row, p.begin, p.size);
}

/// x[row] = table[ids[row]] for the rows of a chunk.
template <typename Table, typename Element>
OLMO_INLINE void copy_rows(const Table* table, const std::int64_t* ids, Element* x,
                           std::int64_t columns, Chunk rows) {
  for (std::int64_t r = rows.begin; r < rows.end; ++r) {
    for (std::int64_t i = gpu::lane(); i < columns; i += 16)
      x[r * columns + i] = element_of<Element>(value_of(table[ids[r] * columns + i]));
  }
}

}  // namespace
}  // namespace olmo::ops::OLMO_ISA

#if defined(__HIP__)
#pragma clang force_cuda_host_device end
#endif

namespace olmo::ops {

using namespace OLMO_ISA;

OLMO_KERNEL olmo_exp(const float* x, float* out, std::int64_t n) {
  const Chunk c = elements(n);
  exp_range(x, out, c.begin, c.end);
}

OLMO_KERNEL olmo_log(const float* x, float* out, std::int64_t n) {
  const Chunk c = elements(n);
  log_range(x, out, c.begin, c.end);
}

OLMO_KERNEL olmo_sigmoid(const float* x, float* out, std::int64_t n) {
  const Chunk c = elements(n);
  sigmoid_range(x, out, c.begin, c.end);
}

OLMO_KERNEL olmo_add(const float* x, const float* y, float* out, std::int64_t n) {
  add_chunk(x, y, out, elements(n));
}

OLMO_KERNEL olmo_add_bf16(const Bf16* x, const Bf16* y, Bf16* out, std::int64_t n) {
  add_chunk(x, y, out, elements(n));
}

OLMO_KERNEL olmo_add_widened(const float* x, const Bf16* y, float* out, std::int64_t n) {
  add_chunk(x, y, out, elements(n));
}

OLMO_KERNEL olmo_scale(float* x, float factor, std::int64_t n) {
  const Chunk c = elements(n);
  scale_range(x, factor, c.begin, c.end);
}

OLMO_KERNEL olmo_scale_bf16(Bf16* x, float factor, std::int64_t n) {
  const Chunk c = elements(n);
  scale_range(x, factor, c.begin, c.end);
}

OLMO_KERNEL olmo_round_to_bf16(float* x, std::int64_t n) {
  const Chunk c = elements(n);
  round_range(x, c.begin, c.end);
}

// clamp_range and mask_range have no lanes: a thread each element.
OLMO_KERNEL olmo_clamp(float* x, float limit, std::uint8_t* mask, std::int64_t n) {
  const std::int64_t i = element();
  if (i < n) clamp_range(x, limit, mask, i, i + 1);
}

OLMO_KERNEL olmo_clamp_bf16(Bf16* x, float limit, std::uint8_t* mask, std::int64_t n) {
  const std::int64_t i = element();
  if (i < n) clamp_range(x, limit, mask, i, i + 1);
}

OLMO_KERNEL olmo_mask(const std::uint8_t* mask, float* x, std::int64_t n) {
  const std::int64_t i = element();
  if (i < n) mask_range(mask, x, i, i + 1);
}

OLMO_KERNEL olmo_mask_bf16(const std::uint8_t* mask, Bf16* x, std::int64_t n) {
  const std::int64_t i = element();
  if (i < n) mask_range(mask, x, i, i + 1);
}

OLMO_KERNEL olmo_swiglu(const float* u, float* y, std::int64_t rows, std::int64_t columns) {
  swiglu_piece(u, y, rows, columns);
}

OLMO_KERNEL olmo_swiglu_bf16(const Bf16* u, Bf16* y, std::int64_t rows, std::int64_t columns) {
  swiglu_piece(u, y, rows, columns);
}

OLMO_KERNEL olmo_swiglu_backward(const float* dy, const float* u, float* du, float* y,
                                 std::int64_t rows, std::int64_t columns) {
  swiglu_backward_piece(dy, u, du, y, rows, columns);
}

OLMO_KERNEL olmo_swiglu_backward_bf16(const Bf16* dy, const Bf16* u, Bf16* du, Bf16* y,
                                      std::int64_t rows, std::int64_t columns) {
  swiglu_backward_piece(dy, u, du, y, rows, columns);
}

OLMO_KERNEL olmo_activation(Activation kind, const float* u, float* y, std::int64_t n) {
  activation_chunk(kind, u, y, elements(n));
}

OLMO_KERNEL olmo_activation_bf16(Activation kind, const Bf16* u, Bf16* y, std::int64_t n) {
  activation_chunk(kind, u, y, elements(n));
}

OLMO_KERNEL olmo_activation_backward(Activation kind, const float* dy, const float* u, float* du,
                                     float* y, std::int64_t n) {
  activation_backward_chunk(kind, dy, u, du, y, elements(n));
}

OLMO_KERNEL olmo_activation_backward_bf16(Activation kind, const Bf16* dy, const Bf16* u, Bf16* du,
                                          Bf16* y, std::int64_t n) {
  activation_backward_chunk(kind, dy, u, du, y, elements(n));
}

OLMO_KERNEL olmo_rope(RopeArgs<float> args, float sign, std::int64_t rows) {
  rope_piece(args, sign, rows);
}

OLMO_KERNEL olmo_rope_bf16(RopeArgs<Bf16> args, float sign, std::int64_t rows) {
  rope_piece(args, sign, rows);
}

OLMO_KERNEL olmo_layer_norm(NormForwardArgs args, std::int64_t rows) {
  const Chunk c = row(rows);
  forward<true>(args, c.begin, c.end);
}

OLMO_KERNEL olmo_rms_norm(NormForwardArgs args, std::int64_t rows) {
  const Chunk c = row(rows);
  forward<false>(args, c.begin, c.end);
}

OLMO_KERNEL olmo_layer_norm_input(NormBackwardArgs args) {
  const Chunk c = row(args.rows);
  input_gradient<true>(args, c.begin, c.end);
}

OLMO_KERNEL olmo_rms_norm_input(NormBackwardArgs args) {
  const Chunk c = row(args.rows);
  input_gradient<false>(args, c.begin, c.end);
}

OLMO_KERNEL olmo_layer_norm_parameters(NormBackwardArgs args) {
  OLMO_SHARED ColumnShared shared;
  column_chains(NormTerms<true>(args), shared);
}

OLMO_KERNEL olmo_rms_norm_parameters(NormBackwardArgs args) {
  OLMO_SHARED ColumnShared shared;
  column_chains(NormTerms<false>(args), shared);
}

OLMO_KERNEL olmo_loss_rows(LossRows<float> rows, std::int64_t count) {
  const Chunk c = row(count);
  loss_rows(rows, c.begin, c.end);
}

OLMO_KERNEL olmo_loss_rows_bf16(LossRows<Bf16> rows, std::int64_t count) {
  const Chunk c = row(count);
  loss_rows(rows, c.begin, c.end);
}

OLMO_KERNEL olmo_log_sums(const float* logits, std::int64_t rows, std::int64_t columns,
                          float* maxima, float* sums) {
  const Chunk c = row(rows);
  log_sums(logits, columns, maxima, sums, c.begin, c.end);
}

OLMO_KERNEL olmo_log_sums_bf16(const Bf16* logits, std::int64_t rows, std::int64_t columns,
                               float* maxima, float* sums) {
  const Chunk c = row(rows);
  log_sums(logits, columns, maxima, sums, c.begin, c.end);
}

OLMO_KERNEL olmo_score_labels(ScoredRows<float> rows, std::int64_t labels) {
  const Chunk c = row(labels);
  score_labels(rows, c.begin, c.end);
}

OLMO_KERNEL olmo_score_labels_bf16(ScoredRows<Bf16> rows, std::int64_t labels) {
  const Chunk c = row(labels);
  score_labels(rows, c.begin, c.end);
}

// Over a list of tensors, whose parts are numbered through.
OLMO_KERNEL olmo_block_squares(const SquaresPart* parts, std::int64_t count, float* sums,
                               std::int64_t blocks) {
  const Chunk c = row(blocks);
  if (c.begin == c.end) return;
  const SquaresPart part = part_of(parts, count, c.begin);
  block_squares(part.x, part.count, sums + part.first, c.begin - part.first, c.end - part.first);
}

OLMO_KERNEL olmo_adamw(const AdamWPart* parts, std::int64_t count) {
  const AdamWPart p = part_of(parts, count, gpu::block_index());
  const Chunk c = update_chunk(p.count, p.first);
  adamw_of_group(p.step, p.grad + c.begin, p.parameter + c.begin, p.exp_avg + c.begin,
                 p.exp_avg_sq + c.begin, c.end - c.begin);
}

OLMO_KERNEL olmo_lionw(const LionWPart* parts, std::int64_t count) {
  const LionWPart p = part_of(parts, count, gpu::block_index());
  const Chunk c = update_chunk(p.count, p.first);
  lionw(p.step, p.grad + c.begin, p.parameter + c.begin, p.exp_avg + c.begin, c.end - c.begin);
}

OLMO_KERNEL olmo_embedding(const float* table, const std::int64_t* ids, float* x, std::int64_t rows,
                           std::int64_t columns) {
  copy_rows(table, ids, x, columns, row(rows));
}

OLMO_KERNEL olmo_embedding_bf16(const Bf16* table, const std::int64_t* ids, Bf16* x,
                                std::int64_t rows, std::int64_t columns) {
  copy_rows(table, ids, x, columns, row(rows));
}

OLMO_KERNEL olmo_embedding_widened(const Bf16* table, const std::int64_t* ids, float* x,
                                   std::int64_t rows, std::int64_t columns) {
  copy_rows(table, ids, x, columns, row(rows));
}

OLMO_KERNEL olmo_embedding_backward(EmbeddingGradient<float> gradient, std::int64_t ids) {
  embedding_backward_piece(gradient, ids);
}

OLMO_KERNEL olmo_embedding_backward_bf16(EmbeddingGradient<Bf16> gradient, std::int64_t ids) {
  embedding_backward_piece(gradient, ids);
}

OLMO_KERNEL olmo_trace_sums(const std::uint8_t* bytes, std::int64_t size, std::uint64_t* sums) {
  trace_sums(bytes, size, sums, gpu::group_index(kThreads));
}

// Matrix products, by the side of the tile and the types of A and B: f is fp32, b is bf16.
#define OLMO_GEMM(side, types, blocks, a_data, b_data)                    \
  OLMO_KERNEL_AT_ONCE(blocks) olmo_gemm_##side##_##types(GemmProblem g) { \
    OLMO_SHARED GemmPanels<side> panels;                                  \
    gemm_tile<side>(g, g.a_data, g.b_data, panels);                       \
  }
OLMO_GEMM(128, ff, 2, a, b)
OLMO_GEMM(128, fb, 2, a, b_bf16)
OLMO_GEMM(128, bf, 2, a_bf16, b)
OLMO_GEMM(128, bb, 2, a_bf16, b_bf16)
OLMO_GEMM(64, ff, 2, a, b)
OLMO_GEMM(64, fb, 2, a, b_bf16)
OLMO_GEMM(64, bf, 2, a_bf16, b)
OLMO_GEMM(64, bb, 2, a_bf16, b_bf16)
#undef OLMO_GEMM

// Attention in fp32 and in bf16, on NVIDIA's GPUs with two blocks on a multiprocessor: one computes
// while the other waits for memory.
#define OLMO_ATTENTION(Element, suffix)                                                            \
  OLMO_KERNEL_AT_ONCE(OLMO_ATTENTION_BLOCKS) olmo_attention##suffix(AttentionProblem<Element> a) { \
    OLMO_SHARED AttentionShared shared;                                                            \
    attention_forward_tile(a, shared);                                                             \
  }                                                                                                \
  OLMO_KERNEL olmo_attention_deltas##suffix(AttentionProblem<Element> a, float* delta,             \
                                            std::int64_t rows) {                                   \
    const Chunk c = row(rows);                                                                     \
    attention_deltas(a, delta, c.begin, c.end);                                                    \
  }                                                                                                \
  OLMO_KERNEL_AT_ONCE(OLMO_ATTENTION_BLOCKS)                                                       \
  olmo_attention_dq##suffix(AttentionProblem<Element> a, const float* delta) {                     \
    OLMO_SHARED AttentionShared shared;                                                            \
    attention_dq_tile(a, delta, shared);                                                           \
  }                                                                                                \
  OLMO_KERNEL_AT_ONCE(OLMO_ATTENTION_BLOCKS)                                                       \
  olmo_attention_dkv##suffix(AttentionProblem<Element> a, const float* delta) {                    \
    OLMO_SHARED AttentionShared shared;                                                            \
    attention_dkv_tile(a, delta, shared);                                                          \
  }                                                                                                \
  OLMO_KERNEL_AT_ONCE(OLMO_ATTENTION_BLOCKS)                                                       \
  olmo_attention_forest##suffix(ForestGpuProblem<Element> f) {                                     \
    OLMO_SHARED AttentionShared shared;                                                            \
    attention_forest_tile(f, shared);                                                              \
  }
OLMO_ATTENTION(float, )
OLMO_ATTENTION(Bf16, _bf16)
#undef OLMO_ATTENTION

}  // namespace olmo::ops
