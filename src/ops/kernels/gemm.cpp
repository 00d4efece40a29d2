// Packed, cache-blocked matrix product after Goto and van de Geijn, "Anatomy of High-Performance
// Matrix Multiplication" (2008), with the roles of A and B exchanged since C is row-major: a block
// of B lies in the second-level cache and panels of A pass through the first. Between blocks of k
// the accumulators are stored and loaded again, which continues each chain exactly.
#include "ops/kernels/gemm.h"

#include <cstddef>

#include "ops/kernels/rows.h"
#include "ops/kernels/tile.h"
#include "ops/simd.h"

namespace olmo::ops::OLMO_ISA {
namespace {

constexpr std::int64_t kMaxK = 512;  // a panel of A (14 x 512 floats) fills half of the L1 cache
constexpr std::int64_t kMinK = 256;  // below it, loading and storing the accumulators shows
constexpr int kPanelRow =
    kMaxK + 16;                     // row stride of a copied panel: rows must not share cache sets
constexpr std::int64_t kGroup = 8;  // panels of A packed together: copies read whole cache lines
constexpr std::int64_t kMaxRows = 2048;        // keeps a block of C near while k advances
constexpr std::int64_t kMaxPackedA = 4 << 20;  // floats

std::int64_t min(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
std::int64_t max(std::int64_t a, std::int64_t b) { return a > b ? a : b; }
std::int64_t round_up(std::int64_t x, std::int64_t unit) { return (x + unit - 1) / unit * unit; }

// The size of equal blocks of at most `limit`, a multiple of `unit`.
std::int64_t even_block(std::int64_t extent, std::int64_t limit, std::int64_t unit) {
  const std::int64_t blocks = max(1, (extent + limit - 1) / limit);
  return max(unit, round_up((extent + blocks - 1) / blocks, unit));
}

GemmBlocking blocking(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t l2_bytes) {
  const std::int64_t b_floats = l2_bytes / 2 / static_cast<std::int64_t>(sizeof(float));
  GemmBlocking g{};
  // All columns in one block, if that leaves enough of k.
  g.k = even_block(k, max(kMinK, min(kMaxK, b_floats / round_up(max(n, 1), kTileColumns))), 16);
  if (g.k * n > b_floats) g.k = even_block(k, kMaxK, 16);
  g.n = even_block(n, max(kTileColumns, b_floats / g.k), kTileColumns);
  std::int64_t rows = k > g.k ? min(m, kMaxRows) : m;
  if (n > g.n) {
    g.a_kept = GemmBlocking::kAllK;
    const std::int64_t fitting = kMaxPackedA / max(k, 1);
    if (fitting < kMinK) g.a_kept = GemmBlocking::kOneBlock;
    rows = min(rows, g.a_kept == GemmBlocking::kAllK ? fitting : kMaxPackedA / g.k);
  }
  g.m = even_block(m, max(rows, kTileRows), kTileRows);
  return g;
}

// Panels of consecutive columns of a row-major source, `panel` floats apart.
template <int kWidth>
void pack_columns(const float* src, std::int64_t src_stride, std::int64_t columns, std::int64_t k,
                  float* dst, std::int64_t panel) {
  constexpr std::int64_t kRun =
      16;  // rows copied for all panels before the next ones: whole lines, few pages
  for (std::int64_t p = 0; p < k; p += kRun) {
    for (std::int64_t j = 0; j < columns; j += kWidth) {
      pack_copied<kWidth>(src + p * src_stride + j, src_stride, min(kWidth, columns - j),
                          min(kRun, k - p), dst + j / kWidth * panel + p * kWidth);
    }
  }
}

// pack_transposed of bf16, widened on the way.
template <int kWidth>
void pack_widened(const Bf16* src, std::int64_t src_stride, std::int64_t rows, std::int64_t k,
                  float* dst) {
  constexpr std::int64_t kRun = 64;
  float run[kWidth * kRun];
  for (std::int64_t p = 0; p < k; p += kRun) {
    const std::int64_t count = min(kRun, k - p);
    for (std::int64_t r = 0; r < rows; ++r)
      widen_row(src + r * src_stride + p, count, run + r * kRun);
    pack_transposed<kWidth>(run, kRun, rows, count, dst + p * kWidth);
  }
}

// pack_columns of bf16, widened on the way.
template <int kWidth>
void pack_widened_columns(const Bf16* src, std::int64_t src_stride, std::int64_t columns,
                          std::int64_t k, float* dst, std::int64_t panel) {
  for (std::int64_t p = 0; p < k; ++p) {
    for (std::int64_t j = 0; j < columns; j += kWidth) {
      float* row = dst + j / kWidth * panel + p * kWidth;
      const std::int64_t width = min(kWidth, columns - j);
      widen_row(src + p * src_stride + j, width, row);
      for (std::int64_t r = width; r < kWidth; ++r) row[r] = 0.0F;
    }
  }
}

// A whose rows are contiguous is packed by copying them to kPanelRow, any other as [k][kTileRows];
// neither transposes.
bool row_panels(const GemmProblem& g) { return g.a_k == 1 && g.a_row != 1; }

std::int64_t panel_floats(const GemmProblem& g, std::int64_t k) {
  return kTileRows * (row_panels(g) ? kPanelRow : k);
}

std::int64_t floats_of_a(const GemmProblem& g, const GemmBlocking& by) {
  if (by.a_kept == GemmBlocking::kNothing) return kGroup * panel_floats(g, by.k);
  const std::int64_t k_blocks =
      by.a_kept == GemmBlocking::kAllK ? max(1, (g.k + by.k - 1) / by.k) : 1;
  return k_blocks * (by.m / kTileRows) * panel_floats(g, by.k);
}

std::int64_t workspace(const GemmProblem& g, const GemmBlocking& by) {
  constexpr std::int64_t kSlack = 32;
  return round_up(floats_of_a(g, by), 16) + by.n * by.k + kSlack;
}

void pack_widened_a(const GemmProblem& g, std::int64_t i0, std::int64_t p0, std::int64_t rows,
                    std::int64_t k, float* dst, std::int64_t panel) {
  const Bf16* a = g.a_bf16 + i0 * g.a_row + p0 * g.a_k;
  if (row_panels(g)) {
    for (std::int64_t i = 0; i < rows; ++i) widen_row(a + i * g.a_row, k, dst + i * kPanelRow);
  } else {
    pack_widened_columns<kTileRows>(a, g.a_k, rows, k, dst, panel);
  }
}

// Panels `panel` floats apart.
void pack_a(const GemmProblem& g, std::int64_t i0, std::int64_t p0, std::int64_t rows,
            std::int64_t k, float* dst, std::int64_t panel) {
  if (g.a_bf16 != nullptr) {
    pack_widened_a(g, i0, p0, rows, k, dst, panel);
    return;
  }
  const float* a = g.a + i0 * g.a_row + p0 * g.a_k;
  if (row_panels(g)) {
    for (std::int64_t i = 0; i < rows; ++i) {
      __builtin_memcpy(dst + i * kPanelRow, a + i * g.a_row,
                       static_cast<std::size_t>(k) * sizeof(float));
    }
  } else {
    pack_columns<kTileRows>(a, g.a_k, rows, k, dst, panel);
  }
}

void pack_widened_b(const GemmProblem& g, std::int64_t p0, std::int64_t j0, std::int64_t k,
                    std::int64_t n, float* dst) {
  const Bf16* b = g.b_bf16 + p0 * g.b_k + j0 * g.b_column;
  if (g.b_column == 1) {
    pack_widened_columns<kTileColumns>(b, g.b_k, n, k, dst, kTileColumns * k);
    return;
  }
  for (std::int64_t j = 0; j < n; j += kTileColumns) {
    pack_widened<kTileColumns>(b + j * g.b_column, g.b_column, min(kTileColumns, n - j), k,
                               dst + j * k);
  }
}

void pack_b(const GemmProblem& g, std::int64_t p0, std::int64_t j0, std::int64_t k, std::int64_t n,
            float* dst) {
  if (g.b_bf16 != nullptr) {
    pack_widened_b(g, p0, j0, k, n, dst);
    return;
  }
  const float* b = g.b + p0 * g.b_k + j0 * g.b_column;
  if (g.b_k != 1 || g.b_column == 1) {
    pack_columns<kTileColumns>(b, g.b_k, n, k, dst, kTileColumns * k);
    return;
  }
  for (std::int64_t j = 0; j < n; j += kTileColumns) {
    pack_transposed<kTileColumns>(b + j * g.b_column, g.b_column, min(kTileColumns, n - j), k,
                                  dst + j * k);
  }
}

// A tile at the right edge of C: computed in a buffer of whole vectors.
void edge_tile(TileKernel kernel, std::int64_t rows, std::int64_t columns, TileOperands t,
               const Prefetch& prefetch) {
  float buffer[kTileRows * kTileColumns] = {};
  float* c = t.c;
  const std::int64_t c_row = t.c_row;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) buffer[i * kTileColumns + j] = c[i * c_row + j];
  }
  t.c = buffer;
  t.c_row = kTileColumns;
  kernel(t, prefetch);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) c[i * c_row + j] = buffer[i * kTileColumns + j];
  }
}

// What will be packed or read next, fetched into the second-level cache a chunk (four streams of k
// / 16 lines) per tile. Without it, copies of rows that lie in memory take a tenth of a small
// product's time.
class NextSource {
 public:
  // `rows` rows of `length` floats.
  void set_rows(const float* first, std::int64_t row, std::int64_t rows, std::int64_t length,
                std::int64_t k) {
    const bool flat = row == length && k > 0;
    *this = NextSource();
    first_ = first;
    row_ = flat ? k : row;
    k_ = k;
    segments_ = flat ? 1 : (length + k - 1) / max(k, 1);
    chunks_ = ((flat ? rows * length / k : rows) + 3) / 4 * segments_;
  }

  // k rows of kGroup panels' columns; a chunk is sixteen columns of a quarter of the rows.
  void set_columns(const float* first, std::int64_t row, std::int64_t k) {
    *this = NextSource();
    first_ = first;
    row_ = row;
    k_ = k;
    chunks_ = 4 * (kGroup * kTileRows / 16);
  }

  [[nodiscard]] bool done() const { return chunk_ >= chunks_; }

  Prefetch take() {
    const std::int64_t c = chunk_++;
    if (segments_ == 0)
      return {first_ + c % 4 * (k_ / 4) * row_ + c / 4 * 16, k_ / 16 * row_, row_};
    return {first_ + c / segments_ * 4 * row_ + c % segments_ * k_, row_, 16};
  }

 private:
  const float* first_ = nullptr;
  std::int64_t row_ = 0, k_ = 0, segments_ = 0, chunk_ = 0, chunks_ = 0;
};

// The sources of a block: a panel of A is wanted before the next block of B.
struct Upcoming {
  const float* idle;  // a line that is near anyway
  NextSource a, b;

  Prefetch take() {
    if (!a.done()) return a.take();
    return b.done() ? Prefetch{idle, 0, 0} : b.take();
  }
};

// One packed panel of A (rows <= kTileRows) times a packed block of B; c and b of `t` are those of
// the first tile.
void multiply_panel(TileKernel kernel, std::int64_t rows, std::int64_t n, TileOperands t,
                    Upcoming& next) {
  for (std::int64_t j = 0; j < n; j += kTileColumns) {
    if (n - j < kTileColumns) {
      edge_tile(kernel, rows, n - j, t, next.take());
      return;
    }
    for (std::int64_t i = 0; i < rows; ++i) {  // the next tile of C, while this one is computed
      for (int v = 0; v < kTileVectors; ++v)
        __builtin_prefetch(t.c + kTileColumns + i * t.c_row + 16 * v, 1);
    }
    kernel(t, next.take());
    t.b += kTileColumns * t.k;
    t.c += kTileColumns;
  }
}

struct Packed {
  float *a, *b;
};

// Where a block begins: rows of C, columns of C, summed indices.
struct Corner {
  std::int64_t i, j, p;
};

// The corner of the block of B that follows.
Corner corner_after(const GemmProblem& g, const GemmBlocking& by, Corner at) {
  const bool columns_first = by.a_kept == GemmBlocking::kOneBlock;
  std::int64_t& inner = columns_first ? at.j : at.p;
  std::int64_t& outer = columns_first ? at.p : at.j;
  inner += columns_first ? by.n : by.k;
  if (inner < (columns_first ? g.n : g.k)) return at;
  inner = 0;
  outer += columns_first ? by.k : by.n;
  if (outer >= (columns_first ? g.k : g.n)) {
    outer = 0;
    at.i += by.m;
  }
  return at;
}

void expect_b(const GemmProblem& g, const GemmBlocking& by, const Corner& next,
              NextSource& source) {
  if (next.i >= g.m) return;
  const std::int64_t k = min(by.k, g.k - next.p), n = min(by.n, g.n - next.j);
  if (g.b_bf16 != nullptr) {  // two to a float
    const void* pairs = g.b_bf16 + next.p * g.b_k + next.j * g.b_column;
    const auto* first = static_cast<const float*>(pairs);
    if (g.b_column == 1) {
      source.set_rows(first, g.b_k / 2, k, n / 2, by.k);
    } else {
      source.set_rows(first, g.b_column / 2, n, k / 2, by.k);
    }
    return;
  }
  const float* b = g.b + next.p * g.b_k + next.j * g.b_column;
  if (g.b_column == 1) {
    source.set_rows(b, g.b_k, k, n, by.k);
  } else {
    source.set_rows(b, g.b_column, n, k, by.k);
  }
}

// The rows after those just packed; at the block's end the next block of k starts at its first row.
// bf16 rows, half as long, are left to the processor.
void expect_a(const GemmProblem& g, const Corner& at, std::int64_t row, std::int64_t m,
              std::int64_t k, NextSource& source) {
  const bool more = row < m;
  if ((!more && at.p + k >= g.k) || g.a_bf16 != nullptr) return;
  const float* a = g.a + (at.i + (more ? row : 0)) * g.a_row + (more ? at.p : at.p + k) * g.a_k;
  if (row_panels(g)) {
    source.set_rows(a, g.a_row, kTileRows, k, k);
  } else {
    source.set_columns(a, g.a_k, k);
  }
}

void multiply_block(const GemmProblem& g, const GemmBlocking& by, const Corner& at,
                    const Packed& packed) {
  const std::int64_t m = min(by.m, g.m - at.i), n = min(by.n, g.n - at.j),
                     k = min(by.k, g.k - at.p);
  const bool accumulate = g.accumulate || at.p > 0, by_rows = row_panels(g);
  const bool keeps = by.a_kept != GemmBlocking::kNothing, packs = !keeps || at.j == 0;
  const std::int64_t panel = panel_floats(g, by.k), group = by_rows ? 1 : kGroup;
  pack_b(g, at.p, at.j, k, n, packed.b);
  float* a = packed.a;
  if (by.a_kept == GemmBlocking::kAllK) a += at.p / by.k * (by.m / kTileRows) * panel;
  Upcoming next{packed.a, {}, {}};
  expect_b(g, by, corner_after(g, by, at), next.b);
  for (std::int64_t i = 0; i < m; i += kTileRows) {
    const std::int64_t rows = min(kTileRows, m - i), index = i / kTileRows;
    const float* here = a + (keeps ? index : index % group) * panel;
    if (packs && index % group == 0) {
      const std::int64_t end = min(m, i + group * kTileRows);
      pack_a(g, at.i + i, at.p, end - i, k, a + (keeps ? index : 0) * panel, panel);
      expect_a(g, at, end, m, k, next.a);
    } else if (!packs) {
      next.a.set_rows(here + panel, by_rows ? kPanelRow : k, kTileRows, k, k);
    }
    const TileKernel kernel = by_rows ? pick_tile<kPanelRow, true>(rows, accumulate)
                                      : pick_tile<1, true>(rows, accumulate);
    multiply_panel(kernel, rows, n,
                   {k, here, by_rows ? 1 : kTileRows, packed.b, kTileColumns,
                    g.c + (at.i + i) * g.c_row + at.j, g.c_row},
                   next);
  }
}

void gemm(const GemmProblem& g, const GemmBlocking& by, float* workspace) {
  const Packed packed{workspace, workspace + round_up(floats_of_a(g, by), 16)};
  const std::int64_t k_end = max(g.k, 1);  // k = 0 still writes the zeros
  for (std::int64_t i0 = 0; i0 < g.m; i0 += by.m) {
    if (by.a_kept == GemmBlocking::kOneBlock) {
      for (std::int64_t p0 = 0; p0 < k_end; p0 += by.k) {
        for (std::int64_t j0 = 0; j0 < g.n; j0 += by.n) multiply_block(g, by, {i0, j0, p0}, packed);
      }
    } else {
      for (std::int64_t j0 = 0; j0 < g.n; j0 += by.n) {
        for (std::int64_t p0 = 0; p0 < k_end; p0 += by.k)
          multiply_block(g, by, {i0, j0, p0}, packed);
      }
    }
  }
}

#if defined(__AVX512F__)
constexpr int kChains = 12;  // more than latency times units, and few enough for the registers
#else
constexpr int kChains = 6;
#endif

float run(std::int64_t rounds) {
  F32x16 sum[kChains];
  for (auto& x : sum) x = broadcast(0.5F);
  const F32x16 a = broadcast(0.999F), b = broadcast(0.001F);
  for (std::int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) sum[c] = fma(sum[c], a, b);
  }
  F32x16 total = zero();
  for (const auto& x : sum) total = total + x;
  return tree_sum(total);
}

}  // namespace

extern const GemmKernels gemm_kernels;
const GemmKernels gemm_kernels = {kTileRows, kTileColumns, blocking, workspace, gemm};

extern const FmaPeak fma_peak;
const FmaPeak fma_peak = {32.0 * kChains, run};

}  // namespace olmo::ops::OLMO_ISA
