// Packed, cache-blocked matrix product after Goto and van de Geijn, "Anatomy of High-Performance
// Matrix Multiplication" (2008), with the roles of A and B exchanged since C is row-major: a block
// of B lies in the second-level cache and panels of A pass through the first. Between blocks of k
// the accumulators are stored and loaded again, which continues each chain exactly.
#include "ops/kernels/gemm.h"

#include <cstddef>

#include "ops/kernels/tile.h"

namespace olmo::ops::OLMO_ISA {
namespace {

constexpr std::int64_t kMaxK =
    512;  // a panel of A (14 x 512 floats) takes half of the first-level cache
constexpr std::int64_t kMinK = 256;  // below it, loading and storing the accumulators shows
constexpr int kPanelRow =
    kMaxK + 16;  // row stride of a copied panel; not a power of two: rows share no set
constexpr std::int64_t kGroup =
    8;  // panels of A packed together, so that copies read whole cache lines
constexpr std::int64_t kMaxRows = 2048;        // keeps a block of C near while k advances
constexpr std::int64_t kMaxPackedA = 4 << 20;  // floats
constexpr std::int64_t kDirectRows =
    768;  // with fewer rows of C, packing B costs more than it saves

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

// Panels `panel` floats apart.
void pack_a(const GemmProblem& g, std::int64_t i0, std::int64_t p0, std::int64_t rows,
            std::int64_t k, float* dst, std::int64_t panel) {
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

void pack_b(const GemmProblem& g, std::int64_t p0, std::int64_t j0, std::int64_t k, std::int64_t n,
            float* dst) {
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
void edge_tile(TileKernel kernel, std::int64_t rows, std::int64_t columns, TileOperands t) {
  float buffer[kTileRows * kTileColumns] = {};
  float* c = t.c;
  const std::int64_t c_row = t.c_row;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) buffer[i * kTileColumns + j] = c[i * c_row + j];
  }
  t.c = buffer;
  t.c_row = kTileColumns;
  kernel(t);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) c[i * c_row + j] = buffer[i * kTileColumns + j];
  }
}

// A block of B: tile column j starts at data + j * column, its rows are `row` apart.
struct BlockOfB {
  const float* data;
  std::int64_t column, row;
};

// One packed panel of A (rows <= kTileRows) times a block of B.
void multiply_panel(TileKernel kernel, std::int64_t rows, std::int64_t n, TileOperands t,
                    const BlockOfB& b) {
  float* const c = t.c;
  for (std::int64_t j = 0; j < n; j += kTileColumns) {
    t.b = b.data + j * b.column;
    t.c = c + j;
    if (n - j < kTileColumns) {
      edge_tile(kernel, rows, n - j, t);
      return;
    }
    for (std::int64_t i = 0; i < rows; ++i) {  // the next tile of C, while this one is computed
      for (int v = 0; v < kTileVectors; ++v)
        __builtin_prefetch(t.c + kTileColumns + i * t.c_row + 16 * v, 1);
    }
    kernel(t);
  }
}

struct Packed {
  float *a, *b;
};

// One block: rows i0.. and columns j0.. of C, summed indices p0...
void multiply_block(const GemmProblem& g, const GemmBlocking& by, std::int64_t i0, std::int64_t j0,
                    std::int64_t p0, const Packed& packed) {
  const std::int64_t m = min(by.m, g.m - i0), n = min(by.n, g.n - j0), k = min(by.k, g.k - p0);
  const bool accumulate = g.accumulate || p0 > 0, by_rows = row_panels(g);
  const std::int64_t panel = panel_floats(g, by.k);
  BlockOfB b{packed.b, k, kTileColumns};
  if (g.b_column == 1 && g.b_k == n && n % kTileColumns == 0 && g.m <= kDirectRows) {
    b = {g.b + p0 * g.b_k, 1, g.b_k};  // whole rows lie together: as good as packed
  } else {
    pack_b(g, p0, j0, k, n, packed.b);
  }
  float* kept = packed.a;
  if (by.a_kept == GemmBlocking::kAllK) kept += p0 / by.k * (by.m / kTileRows) * panel;
  for (std::int64_t i = 0; i < m; i += kTileRows) {
    const std::int64_t rows = min(kTileRows, m - i);
    const std::int64_t slot =
        by.a_kept == GemmBlocking::kNothing ? i / kTileRows % kGroup : i / kTileRows;
    if ((by.a_kept == GemmBlocking::kNothing || j0 == 0) && i / kTileRows % kGroup == 0) {
      const std::int64_t group = min(kGroup * kTileRows, m - i);
      pack_a(g, i0 + i, p0, group, k, kept + slot * panel, panel);
    }
    const TileKernel kernel = by_rows ? pick_tile<kTileRows, kPanelRow>(rows, accumulate)
                                      : pick_tile<kTileRows, 1>(rows, accumulate);
    multiply_panel(kernel, rows, n,
                   {k, kept + slot * panel, by_rows ? 1 : kTileRows, b.data, b.row,
                    g.c + (i0 + i) * g.c_row + j0, g.c_row},
                   b);
  }
}

void gemm(const GemmProblem& g, const GemmBlocking& by, float* workspace) {
  const Packed packed{workspace, workspace + round_up(floats_of_a(g, by), 16)};
  const std::int64_t k_end = max(g.k, 1);  // k = 0 still writes the zeros
  for (std::int64_t i0 = 0; i0 < g.m; i0 += by.m) {
    if (by.a_kept == GemmBlocking::kOneBlock) {
      for (std::int64_t p0 = 0; p0 < k_end; p0 += by.k) {
        for (std::int64_t j0 = 0; j0 < g.n; j0 += by.n) multiply_block(g, by, i0, j0, p0, packed);
      }
    } else {
      for (std::int64_t j0 = 0; j0 < g.n; j0 += by.n) {
        for (std::int64_t p0 = 0; p0 < k_end; p0 += by.k) multiply_block(g, by, i0, j0, p0, packed);
      }
    }
  }
}

}  // namespace

extern const GemmKernels gemm_kernels;
const GemmKernels gemm_kernels = {kTileRows, kTileColumns, blocking, workspace, gemm};

}  // namespace olmo::ops::OLMO_ISA
