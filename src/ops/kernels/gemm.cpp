// Packed, cache-blocked matrix product after Goto and van de Geijn, "Anatomy of High-Performance
// Matrix Multiplication" (2008), with the roles of A and B exchanged since C is row-major: a block
// of B lies in the second-level cache and panels of A pass through the first. Between blocks of k
// the accumulators are stored and loaded again, which continues each chain exactly.
#include "ops/kernels/gemm.h"

#include "ops/kernels/tile.h"

namespace olmo::ops::OLMO_ISA {
namespace {

constexpr std::int64_t kMaxK =
    512;  // a panel of A (14 x 512 floats) takes half of the first-level cache
constexpr std::int64_t kGroup =
    8;  // panels of A packed together, so that copies read whole cache lines
constexpr std::int64_t kMaxRows = 2048;        // keeps a block of C near while k advances
constexpr std::int64_t kMaxPackedA = 4 << 20;  // floats
constexpr std::int64_t kSlack = 16;            // transposed packing writes past its panel

std::int64_t min(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
std::int64_t max(std::int64_t a, std::int64_t b) { return a > b ? a : b; }
std::int64_t round_up(std::int64_t x, std::int64_t unit) { return (x + unit - 1) / unit * unit; }

// The size of equal blocks of at most `limit`, a multiple of `unit`.
std::int64_t even_block(std::int64_t extent, std::int64_t limit, std::int64_t unit) {
  const std::int64_t blocks = max(1, (extent + limit - 1) / limit);
  return max(unit, round_up((extent + blocks - 1) / blocks, unit));
}

GemmBlocking blocking(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t l2_bytes) {
  GemmBlocking g{};
  g.k = even_block(k, kMaxK, 16);
  const std::int64_t b_floats = l2_bytes / 2 / static_cast<std::int64_t>(sizeof(float));
  g.n = even_block(n, max(kTileColumns, b_floats / g.k), kTileColumns);
  g.keep_a = n > g.n;
  std::int64_t rows = k > g.k ? kMaxRows : m;
  if (g.keep_a) rows = min(rows, max(kTileRows, kMaxPackedA / max(k, 1)));
  g.m = even_block(m, max(rows, kTileRows), kTileRows);
  return g;
}

std::int64_t floats_of_a(const GemmProblem& g, const GemmBlocking& by) {
  return (by.keep_a ? by.m * round_up(g.k, by.k) : kGroup * kTileRows * by.k) + kSlack;
}

std::int64_t workspace(const GemmProblem& g, const GemmBlocking& by) {
  return round_up(floats_of_a(g, by), 16) + by.n * by.k + kSlack;
}

template <int kWidth>
void pack(const float* src, std::int64_t panel_stride, std::int64_t k_stride, std::int64_t extent,
          std::int64_t k, float* dst) {
  if (k_stride == 1 && panel_stride != 1) {
    for (std::int64_t i = 0; i < extent; i += kWidth) {
      pack_transposed<kWidth>(src + i * panel_stride, panel_stride, min(kWidth, extent - i), k,
                              dst + i * k);
    }
    return;
  }
  constexpr std::int64_t kRun =
      16;  // rows of k copied for all panels before the next: whole lines, few pages
  for (std::int64_t p = 0; p < k; p += kRun) {
    for (std::int64_t i = 0; i < extent; i += kWidth) {
      pack_copied<kWidth>(src + p * k_stride + i, k_stride, min(kWidth, extent - i),
                          min(kRun, k - p), dst + i * k + p * kWidth);
    }
  }
}

// A tile at the right edge of C: computed in a buffer of whole vectors.
void edge_tile(std::int64_t rows, std::int64_t columns, bool accumulate, TileOperands t) {
  float buffer[kTileRows * kTileColumns] = {};
  float* c = t.c;
  const std::int64_t c_row = t.c_row;
  if (accumulate) {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) buffer[i * kTileColumns + j] = c[i * c_row + j];
    }
  }
  t.c = buffer;
  t.c_row = kTileColumns;
  tile<1>(rows, accumulate, t);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) c[i * c_row + j] = buffer[i * kTileColumns + j];
  }
}

// One panel of A (rows <= kTileRows) times a packed block of B.
void multiply_panel(std::int64_t rows, std::int64_t n, std::int64_t k, const float* a,
                    const float* b, float* c, std::int64_t c_row, bool accumulate) {
  const TileKernel kernel = pick_tile<kTileRows, 1>(rows, accumulate);
  for (std::int64_t j = 0; j < n; j += kTileColumns) {
    const TileOperands t{k, a, kTileRows, b + j * k, kTileColumns, c + j, c_row};
    if (n - j < kTileColumns) {
      edge_tile(rows, n - j, accumulate, t);
      return;
    }
    for (std::int64_t i = 0; i < rows; ++i) {  // the next tile of C, while this one is computed
      for (int v = 0; v < kTileVectors; ++v)
        __builtin_prefetch(c + j + kTileColumns + i * c_row + 16 * v, 1);
    }
    kernel(t);
  }
}

void gemm(const GemmProblem& g, const GemmBlocking& by, float* workspace) {
  float* const packed_a = workspace;
  float* const packed_b = workspace + round_up(floats_of_a(g, by), 16);
  for (std::int64_t i0 = 0; i0 < g.m; i0 += by.m) {
    const std::int64_t m = min(by.m, g.m - i0);
    for (std::int64_t j0 = 0; j0 < g.n; j0 += by.n) {
      const std::int64_t n = min(by.n, g.n - j0);
      for (std::int64_t p0 = 0; p0 < max(g.k, 1); p0 += by.k) {
        const std::int64_t k = min(by.k, g.k - p0);
        const bool accumulate = g.accumulate || p0 > 0;
        pack<kTileColumns>(g.b + p0 * g.b_k + j0 * g.b_column, g.b_column, g.b_k, n, k, packed_b);
        for (std::int64_t i = 0; i < m; i += kGroup * kTileRows) {
          const std::int64_t rows = min(kGroup * kTileRows, m - i);
          float* a = by.keep_a ? packed_a + p0 * by.m + i * k : packed_a;
          if (!by.keep_a || j0 == 0) {
            pack<kTileRows>(g.a + (i0 + i) * g.a_row + p0 * g.a_k, g.a_row, g.a_k, rows, k, a);
          }
          for (std::int64_t r = 0; r < rows; r += kTileRows) {
            multiply_panel(min(kTileRows, rows - r), n, k, a + r * k, packed_b,
                           g.c + (i0 + i + r) * g.c_row + j0, g.c_row, accumulate);
          }
        }
      }
    }
  }
}

}  // namespace

extern const GemmKernels gemm_kernels;
const GemmKernels gemm_kernels = {kTileRows, kTileColumns, blocking, workspace, gemm};

}  // namespace olmo::ops::OLMO_ISA
