// Packed, cache-blocked matrix product after Goto and van de Geijn, "Anatomy of High-Performance
// Matrix Multiplication" (2008), with the roles of A and B exchanged since C is row-major: a block
// of B lies in the second-level cache and panels of A pass through the first. Between blocks of k
// the accumulators are stored and loaded again, which continues each chain exactly. Where C is bf16
// they are stored in the workspace, in fp32, until the chain ends.
#include "ops/kernels/gemm.h"

#include <cstddef>

#include "ops/kernels/extents.h"
#include "ops/kernels/operands.h"
#include "ops/kernels/rows.h"
#include "ops/kernels/tile.h"
#include "ops/simd.h"

namespace olmo::ops::OLMO_ISA {
namespace {

// Steps of k in a block at most. With AVX-512 a panel of A (14 x 512 floats) so fills half of the
// first-level cache; smaller tiles begin and end more often, and do so less in longer blocks.
constexpr std::int64_t kMaxK = kTileVectors > 1 ? 512 : 1024;
constexpr std::int64_t kMinK = 256;  // below it, loading and storing the accumulators shows
// Tiles that pass while the next panel of A is fetched.
constexpr std::int64_t kFetching = kTileVectors > 1 ? 5 : 3;
constexpr std::int64_t kMaxRows = 2048;        // keeps a block of C near while k advances
constexpr std::int64_t kMaxPackedA = 1 << 20;  // floats: columns pass in the last-level cache
constexpr std::int64_t kMaxSums = 4 << 20;     // floats

// The size of equal blocks of at most `limit`, a multiple of `unit`.
std::int64_t even_block(std::int64_t extent, std::int64_t limit, std::int64_t unit) {
  const std::int64_t blocks = larger(1, parts_of(extent, limit));
  return larger(unit, rounded_up(parts_of(extent, blocks), unit));
}

GemmBlocking blocking(const GemmProblem& problem, std::int64_t l2_bytes) {
  const std::int64_t m = problem.m, n = problem.n, k = problem.k;
  // The second-level cache holds the block in use, the next one, and panels of A.
  const std::int64_t b_floats = l2_bytes * 5 / 16 / static_cast<std::int64_t>(sizeof(float));
  GemmBlocking g{};
  // All columns in one block, if that leaves enough of k.
  g.k = even_block(
      k, larger(kMinK, smaller(kMaxK, b_floats / rounded_up(larger(n, 1), kTileColumns))), 16);
  if (g.k * n > b_floats) g.k = even_block(k, kMaxK, 16);
  g.n = even_block(n, larger(kFetching * kTileColumns, b_floats / g.k), kTileColumns);
  std::int64_t rows = k > g.k ? smaller(m, kMaxRows) : m;
  if (n > g.n) {
    g.a_kept = m * k <= kMaxPackedA ? GemmBlocking::kAllK : GemmBlocking::kOneBlock;
    if (g.a_kept == GemmBlocking::kOneBlock) {
      rows = smaller(rows, kMaxPackedA / g.k);
      if (problem.c_bf16 != nullptr) rows = smaller(rows, kMaxSums / n);  // all columns' sums wait
    }
  }
  g.m = even_block(m, larger(rows, kTileRows), kTileRows);
  return g;
}

// Row stride of the sums that wait in the workspace for the next block of k: rows must not share
// cache sets. 0 where none do.
std::int64_t sums_row(const GemmProblem& g, const GemmBlocking& by) {
  if (g.c_bf16 == nullptr || g.k <= by.k) return 0;
  return (by.a_kept == GemmBlocking::kOneBlock ? rounded_up(g.n, kTileColumns) : by.n) + 16;
}

std::int64_t workspace(const GemmProblem& g, const GemmBlocking& by) {
  return rounded_up(floats_of_a(g, by), 16) + blocks_of_b(g, by) * floats_of_b(by) +
         by.m * sums_row(g, by);
}

// Where the sums of a tile are kept between blocks of k, and what becomes of them when the chain
// ends.
struct Destination {
  float* sums;  // null: C is bf16 and one block of k holds the whole chain
  std::int64_t sums_row;
  Bf16* bf16;  // set in the last block of k, where C is bf16
  std::int64_t bf16_row;
  bool rounds;  // in the last block of k: the sums are rounded in place

  [[nodiscard]] Destination columns_from(std::int64_t j) const {
    Destination d = *this;
    if (sums != nullptr) d.sums += j;
    if (bf16 != nullptr) d.bf16 += j;
    return d;
  }
};

// The chains of a tile have ended; its sums lie at `from`.
OLMO_INLINE void end_chains(const float* from, std::int64_t from_row, std::int64_t rows,
                            std::int64_t columns, const Destination& to) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* x = from + row * from_row;
    if (to.bf16 != nullptr) {
      Bf16* c = to.bf16 + row * to.bf16_row;
      for_row(columns, [&] OLMO_STEP { store_some(c + i, load_some(x + i, count), count); });
    } else {
      float* c = to.sums + row * to.sums_row;
      for_row(columns,
              [&] OLMO_STEP { store_some(c + i, round_to_bf16(load_some(x + i, count)), count); });
    }
  }
}

// A tile of whole vectors whose sums have a place in memory.
void whole_tile(TileKernel kernel, std::int64_t rows, TileOperands t, const Destination& to,
                const Beside& beside) {
  t.c = to.sums;
  t.c_row = to.sums_row;
  kernel(t, beside);
  if (to.bf16 != nullptr || to.rounds) end_chains(t.c, t.c_row, rows, kTileColumns, to);
}

// A tile at the right edge of C, or one whose sums need no place: computed in a buffer of whole
// vectors.
void buffered_tile(TileKernel kernel, std::int64_t rows, std::int64_t columns, bool accumulate,
                   TileOperands t, const Destination& to, const Beside& beside) {
  alignas(64) float buffer[kTileRows * kTileColumns];
  for (std::int64_t i = 0; accumulate && i < rows; ++i) {
    for (std::int64_t j = 0; j < kTileColumns; ++j)
      buffer[i * kTileColumns + j] = j < columns ? to.sums[i * to.sums_row + j] : 0.0F;
  }
  t.c = buffer;
  t.c_row = kTileColumns;
  kernel(t, beside);
  if (to.bf16 != nullptr || to.rounds) {
    if (columns == kTileColumns) {
      end_chains(buffer, kTileColumns, rows, kTileColumns, to);
    } else {
      end_chains(buffer, kTileColumns, rows, columns, to);
    }
    return;
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j)
      to.sums[i * to.sums_row + j] = buffer[i * kTileColumns + j];
  }
}

// The tile of C at `to`: its sums, which are read first, or where they go.
Lines lines_of_c(const Destination& to) {
  const bool is_bf16 = to.sums == nullptr;
  const void* first = is_bf16 ? static_cast<const void*>(to.bf16) : to.sums;
  if (first == nullptr) return {};
  const auto size = static_cast<std::int64_t>(is_bf16 ? sizeof(Bf16) : sizeof(float));
  const std::int64_t in_row = parts_of(kTileColumns * size, 64),
                     row = (is_bf16 ? to.bf16_row : to.sums_row) * size;
  return {static_cast<const char*>(first), kTileRows * in_row, in_row, row - (in_row - 1) * 64};
}

// One packed panel of A (rows <= kTileRows) times a packed block of B; b of `t` and `to` are those
// of the first tile, `below` is the destination of the panel that follows.
void multiply_panel(TileKernel kernel, std::int64_t rows, std::int64_t n, bool accumulate,
                    TileOperands t, const Destination& to, const Destination& below,
                    Operands& operands) {
  Beside beside;  // not made anew for each tile: compilers clear it with a slow `rep stos`
  for (std::int64_t j = 0; j < n; j += kTileColumns) {
    const std::int64_t columns = smaller(kTileColumns, n - j), after = j + kTileColumns;
    const Destination here = to.columns_from(j);
    beside.read.count = beside.copied.count = 0;
    beside.written = lines_of_c(after < n ? to.columns_from(after) : below);
    operands.begin_tile(rows == kTileRows ? t.k / 4 : 0, beside);
    if (columns < kTileColumns || to.sums == nullptr) {
      buffered_tile(kernel, rows, columns, accumulate, t, here, beside);
    } else {
      whole_tile(kernel, rows, t, here, beside);
    }
    t.b += kTileColumns * t.k;
  }
}

// Where the sums of the rows from `i` of the block go, for its columns.
Destination destination(const GemmProblem& g, const GemmBlocking& by, const Corner& at,
                        std::int64_t i, float* sums) {
  const bool last = at.p + by.k >= g.k;
  const std::int64_t offset = (at.i + i) * g.c_row + at.j;
  if (g.c_bf16 == nullptr) return {g.c + offset, g.c_row, nullptr, 0, last && g.rounds_c};
  Destination to{nullptr, sums_row(g, by), nullptr, g.c_row, false};
  if (to.sums_row > 0) {
    to.sums = sums + i * to.sums_row + (by.a_kept == GemmBlocking::kOneBlock ? at.j : 0);
  }
  if (last) to.bf16 = g.c_bf16 + offset;
  return to;
}

// The kernel for `rows` rows of A.
TileKernel tile_of(const GemmProblem& g, std::int64_t rows, bool accumulate) {
  return row_panels(g) ? pick_tile<kAnyRow, true>(rows, accumulate)
                       : pick_tile<1, true>(rows, accumulate);
}

void multiply_block(const GemmProblem& g, const GemmBlocking& by, const Corner& at,
                    Operands& operands) {
  const std::int64_t m = smaller(by.m, g.m - at.i), n = smaller(by.n, g.n - at.j),
                     k = smaller(by.k, g.k - at.p);
  const bool accumulate = g.accumulate || at.p > 0;
  const float* b = operands.block_of_b(at);
  for (std::int64_t i = 0; i < m; i += kTileRows) {
    const std::int64_t rows = smaller(kTileRows, m - i);
    const float* a = operands.panel_of_a(at, i);
    multiply_panel(
        tile_of(g, rows, accumulate), rows, n, accumulate,
        {k, a, row_panels(g) ? 1 : kTileRows, b, kTileColumns, nullptr, 0, row_of_a(g, by)},
        destination(g, by, at, i, operands.sums()),
        destination(g, by, at, i + rows < m ? i + rows : i, operands.sums()), operands);
  }
}

void gemm(const GemmProblem& g, const GemmBlocking& by, float* workspace) {
  Operands operands(g, by, workspace);
  const std::int64_t k_end = larger(g.k, 1);  // k = 0 still writes the zeros
  for (std::int64_t i0 = 0; i0 < g.m; i0 += by.m) {
    if (by.a_kept == GemmBlocking::kOneBlock) {
      for (std::int64_t p0 = 0; p0 < k_end; p0 += by.k) {
        for (std::int64_t j0 = 0; j0 < g.n; j0 += by.n)
          multiply_block(g, by, {i0, j0, p0}, operands);
      }
    } else {
      for (std::int64_t j0 = 0; j0 < g.n; j0 += by.n) {
        for (std::int64_t p0 = 0; p0 < k_end; p0 += by.k)
          multiply_block(g, by, {i0, j0, p0}, operands);
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
