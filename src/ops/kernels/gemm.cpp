// Packed, cache-blocked matrix product after Goto and van de Geijn, "Anatomy of High-Performance
// Matrix Multiplication" (2008), with the roles of A and B exchanged since C is row-major: a block
// of B lies in the second-level cache and panels of A pass through the first. Between blocks of k
// the accumulators are stored and loaded again, which continues each chain exactly. Where C is bf16
// they are stored in the workspace, in fp32, until the chain ends.
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
constexpr std::int64_t kFetching = 5;    // tiles that pass while the next panel of A is fetched
constexpr std::int64_t kMaxRows = 2048;  // keeps a block of C near while k advances
constexpr std::int64_t kMaxPackedA = 1 << 20;  // floats: columns pass in the last-level cache
constexpr std::int64_t kMaxSums = 4 << 20;     // floats

constexpr std::int64_t kLineBytes = 64;

std::int64_t min(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
std::int64_t max(std::int64_t a, std::int64_t b) { return a > b ? a : b; }
std::int64_t round_up(std::int64_t x, std::int64_t unit) { return (x + unit - 1) / unit * unit; }

// The size of equal blocks of at most `limit`, a multiple of `unit`.
std::int64_t even_block(std::int64_t extent, std::int64_t limit, std::int64_t unit) {
  const std::int64_t blocks = max(1, (extent + limit - 1) / limit);
  return max(unit, round_up((extent + blocks - 1) / blocks, unit));
}

GemmBlocking blocking(const GemmProblem& problem, std::int64_t l2_bytes) {
  const std::int64_t m = problem.m, n = problem.n, k = problem.k;
  const std::int64_t b_floats = l2_bytes / 2 / static_cast<std::int64_t>(sizeof(float));
  GemmBlocking g{};
  // All columns in one block, if that leaves enough of k.
  g.k = even_block(k, max(kMinK, min(kMaxK, b_floats / round_up(max(n, 1), kTileColumns))), 16);
  if (g.k * n > b_floats) g.k = even_block(k, kMaxK, 16);
  g.n = even_block(n, max(kTileColumns, b_floats / g.k), kTileColumns);
  std::int64_t rows = k > g.k ? min(m, kMaxRows) : m;
  if (n > g.n) {
    // The next block of B is fetched while panels of A pass: all three share the cache.
    g.n = even_block(n, max(kFetching * kTileColumns, b_floats * 5 / 8 / g.k), kTileColumns);
    g.a_kept = m * k <= kMaxPackedA ? GemmBlocking::kAllK : GemmBlocking::kOneBlock;
    if (g.a_kept == GemmBlocking::kOneBlock) {
      rows = min(rows, kMaxPackedA / g.k);
      if (problem.c_bf16 != nullptr) rows = min(rows, kMaxSums / n);  // all columns' sums wait
    }
  }
  g.m = even_block(m, max(rows, kTileRows), kTileRows);
  return g;
}

// Panels of consecutive columns of a row-major source, `panel` floats apart.
template <int kWidth, typename Element>
void pack_columns(const Element* src, std::int64_t src_stride, std::int64_t columns, std::int64_t k,
                  float* dst, std::int64_t panel) {
  // Rows copied for all panels before the next ones: whole lines, few pages, and the first-level
  // cache holds them where all share a set.
  constexpr std::int64_t kRun = 8;
  constexpr std::int64_t kAhead = 16;  // rows: what was fetched long ago may have left the cache
  constexpr std::int64_t kLine = 64 / sizeof(Element);
  for (std::int64_t p = 0; p < k; p += kRun) {
    for (std::int64_t next = p + kAhead; next < min(k, p + kAhead + kRun); ++next) {
      for (std::int64_t j = 0; j < columns; j += kLine)
        __builtin_prefetch(src + next * src_stride + j);
    }
    for (std::int64_t j = 0; j < columns; j += kWidth) {
      pack_copied<kWidth>(src + p * src_stride + j, src_stride, min(kWidth, columns - j),
                          min(kRun, k - p), dst + j / kWidth * panel + p * kWidth);
    }
  }
}

// A whose rows are contiguous is read where it lies, or packed by copying them to kPanelRow; any
// other is packed as [k][kTileRows]. Nothing transposes.
bool row_panels(const GemmProblem& g) { return g.a_k == 1 && g.a_row != 1; }

// Rows that share the sets of the first-level cache are copied, and bf16 is, to be widened.
bool reads_a(const GemmProblem& g) {
  constexpr std::int64_t kSets = 1024;  // floats after which the sets repeat
  return row_panels(g) && g.a_bf16 == nullptr && g.a_row % kSets != 0;
}

std::int64_t panel_floats(const GemmProblem& g, std::int64_t k) {
  return kTileRows * (row_panels(g) ? kPanelRow : k);
}

std::int64_t floats_of_a(const GemmProblem& g, const GemmBlocking& by) {
  if (reads_a(g)) return 0;
  if (by.a_kept == GemmBlocking::kNothing) return kGroup * panel_floats(g, by.k);
  const std::int64_t k_blocks =
      by.a_kept == GemmBlocking::kAllK ? max(1, (g.k + by.k - 1) / by.k) : 1;
  return k_blocks * (by.m / kTileRows) * panel_floats(g, by.k);
}

// Row stride of the sums that wait in the workspace for the next block of k: rows must not share
// cache sets. 0 where none do.
std::int64_t sums_row(const GemmProblem& g, const GemmBlocking& by) {
  if (g.c_bf16 == nullptr || g.k <= by.k) return 0;
  return (by.a_kept == GemmBlocking::kOneBlock ? round_up(g.n, kTileColumns) : by.n) + 16;
}

std::int64_t floats_of_b(const GemmBlocking& by) {
  constexpr std::int64_t kSlack = 32;
  return round_up(by.n * by.k + kSlack, 16);
}

std::int64_t workspace(const GemmProblem& g, const GemmBlocking& by) {
  return round_up(floats_of_a(g, by), 16) + floats_of_b(by) + by.m * sums_row(g, by);
}

void copy_row(const float* src, std::int64_t n, float* dst) {
  __builtin_memcpy(dst, src, static_cast<std::size_t>(n) * sizeof(float));
}
void copy_row(const Bf16* src, std::int64_t n, float* dst) { widen_row(src, n, dst); }

// Panels `panel` floats apart; `a` is the first element.
template <typename Element>
void pack_a(const GemmProblem& g, const Element* a, std::int64_t rows, std::int64_t k, float* dst,
            std::int64_t panel) {
  if (row_panels(g)) {
    for (std::int64_t i = 0; i < rows; ++i) copy_row(a + i * g.a_row, k, dst + i * kPanelRow);
  } else {
    pack_columns<kTileRows>(a, g.a_k, rows, k, dst, panel);
  }
}

template <typename Element>
void pack_b(const GemmProblem& g, const Element* b, std::int64_t k, std::int64_t n, float* dst) {
  if (g.b_k != 1 || g.b_column == 1) {
    pack_columns<kTileColumns>(b, g.b_k, n, k, dst, kTileColumns * k);
    return;
  }
  for (std::int64_t j = 0; j < n; j += kTileColumns) {
    pack_transposed<kTileColumns>(b + j * g.b_column, g.b_column, min(kTileColumns, n - j), k,
                                  dst + j * k);
  }
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
                const Prefetch& prefetch) {
  t.c = to.sums;
  t.c_row = to.sums_row;
  kernel(t, prefetch);
  if (to.bf16 != nullptr || to.rounds) end_chains(t.c, t.c_row, rows, kTileColumns, to);
}

// A tile at the right edge of C, or one whose sums need no place: computed in a buffer of whole
// vectors.
void buffered_tile(TileKernel kernel, std::int64_t rows, std::int64_t columns, bool accumulate,
                   TileOperands t, const Destination& to, const Prefetch& prefetch) {
  alignas(64) float buffer[kTileRows * kTileColumns];
  for (std::int64_t i = 0; accumulate && i < rows; ++i) {
    for (std::int64_t j = 0; j < kTileColumns; ++j)
      buffer[i * kTileColumns + j] = j < columns ? to.sums[i * to.sums_row + j] : 0.0F;
  }
  t.c = buffer;
  t.c_row = kTileColumns;
  kernel(t, prefetch);
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

// Rows that will be packed or read next, fetched into the second-level cache a few per tile.
// Without it, copies of rows that lie in memory take a tenth of a small product's time.
class NextSource {
 public:
  NextSource() = default;

  // `rows` rows of `length` elements, `row` elements apart, for tiles of k steps.
  template <typename Element>
  NextSource(const Element* first, std::int64_t row, std::int64_t rows, std::int64_t length,
             std::int64_t k)
      : row_(row * static_cast<std::int64_t>(sizeof(Element))), rows_(rows) {
    const auto into_line =
        static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(first) % kLineBytes);
    next_ = reinterpret_cast<const char*>(first) - into_line;
    const auto bytes = into_line + length * static_cast<std::int64_t>(sizeof(Element));
    in_row_ = max(1, (bytes + kLineBytes - 1) / kLineBytes);
    per_tile_ = max(1, k / 4 / in_row_);
  }

  [[nodiscard]] bool done() const { return rows_ <= 0; }

  Lines take() {
    const std::int64_t rows = min(rows_, per_tile_);
    const Lines lines{next_, rows * in_row_, in_row_, row_ - (in_row_ - 1) * kLineBytes};
    rows_ -= rows;
    next_ += rows * row_;
    return lines;
  }

 private:
  const char* next_ = nullptr;
  std::int64_t row_ = 0, rows_ = 0, in_row_ = 1, per_tile_ = 1;
};

// The sources of a block: a panel of A is wanted before the next block of B.
struct Upcoming {
  NextSource a, b;

  Lines take() {
    if (!a.done()) return a.take();
    return b.done() ? Lines{} : b.take();
  }
};

// The tile of C at `to`: its sums, which are read first, or where they go.
Lines lines_of_c(const Destination& to) {
  const bool is_bf16 = to.sums == nullptr;
  const void* first = is_bf16 ? static_cast<const void*>(to.bf16) : to.sums;
  if (first == nullptr) return {};
  const auto size = static_cast<std::int64_t>(is_bf16 ? sizeof(Bf16) : sizeof(float));
  const std::int64_t in_row = (kTileColumns * size + kLineBytes - 1) / kLineBytes,
                     row = (is_bf16 ? to.bf16_row : to.sums_row) * size;
  return {static_cast<const char*>(first), kTileRows * in_row, in_row,
          row - (in_row - 1) * kLineBytes};
}

// One packed panel of A (rows <= kTileRows) times a packed block of B; b of `t` and `to` are those
// of the first tile, `below` is the destination of the panel that follows.
void multiply_panel(TileKernel kernel, std::int64_t rows, std::int64_t n, bool accumulate,
                    TileOperands t, const Destination& to, const Destination& below,
                    Upcoming& next) {
  for (std::int64_t j = 0; j < n; j += kTileColumns) {
    const std::int64_t columns = min(kTileColumns, n - j), after = j + kTileColumns;
    const Destination here = to.columns_from(j);
    const Prefetch prefetch{next.take(), lines_of_c(after < n ? to.columns_from(after) : below)};
    if (columns < kTileColumns || to.sums == nullptr) {
      buffered_tile(kernel, rows, columns, accumulate, t, here, prefetch);
    } else {
      whole_tile(kernel, rows, t, here, prefetch);
    }
    t.b += kTileColumns * t.k;
  }
}

struct Packed {
  float *a, *b, *sums;
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

NextSource source_of_b(const GemmProblem& g, const GemmBlocking& by, const Corner& at) {
  if (at.i >= g.m) return {};
  const std::int64_t k = min(by.k, g.k - at.p), n = min(by.n, g.n - at.j),
                     first = at.p * g.b_k + at.j * g.b_column;
  const bool along_n = g.b_column == 1;
  const std::int64_t row = along_n ? g.b_k : g.b_column, rows = along_n ? k : n,
                     length = along_n ? n : k;
  if (g.b_bf16 != nullptr) return {g.b_bf16 + first, row, rows, length, by.k};
  return {g.b + first, row, rows, length, by.k};
}

// The rows of A after those just packed; at the block's end the next block of k starts at its first
// row.
NextSource source_of_a(const GemmProblem& g, const Corner& at, std::int64_t row, std::int64_t m,
                       std::int64_t k) {
  const bool more = row < m;
  if (!more && at.p + k >= g.k) return {};
  const std::int64_t i = at.i + (more ? row : 0), p = more ? at.p : at.p + k;
  const std::int64_t first = i * g.a_row + p * g.a_k;
  const bool by_rows = row_panels(g);
  const std::int64_t stride = by_rows ? g.a_row : g.a_k, rows = by_rows ? kTileRows : k,
                     length = by_rows ? k : min(kGroup * kTileRows, g.m - i);
  if (g.a_bf16 != nullptr) return {g.a_bf16 + first, stride, rows, length, k};
  return {g.a + first, stride, rows, length, k};
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

void pack_block_of_b(const GemmProblem& g, const Corner& at, std::int64_t k, std::int64_t n,
                     float* dst) {
  const std::int64_t first = at.p * g.b_k + at.j * g.b_column;
  if (g.b_bf16 != nullptr) {
    pack_b(g, g.b_bf16 + first, k, n, dst);
  } else {
    pack_b(g, g.b + first, k, n, dst);
  }
}

void pack_rows_of_a(const GemmProblem& g, const Corner& at, std::int64_t row, std::int64_t rows,
                    std::int64_t k, float* dst, std::int64_t panel) {
  const std::int64_t first = (at.i + row) * g.a_row + at.p * g.a_k;
  if (g.a_bf16 != nullptr) {
    pack_a(g, g.a_bf16 + first, rows, k, dst, panel);
  } else {
    pack_a(g, g.a + first, rows, k, dst, panel);
  }
}

// The kernel for `rows` rows of A as they lie.
TileKernel tile_of(const GemmProblem& g, std::int64_t rows, bool accumulate) {
  if (reads_a(g)) return pick_tile<kAnyRow, true>(rows, accumulate);
  return row_panels(g) ? pick_tile<kPanelRow, true>(rows, accumulate)
                       : pick_tile<1, true>(rows, accumulate);
}

void multiply_block(const GemmProblem& g, const GemmBlocking& by, const Corner& at,
                    const Packed& packed) {
  const std::int64_t m = min(by.m, g.m - at.i), n = min(by.n, g.n - at.j),
                     k = min(by.k, g.k - at.p);
  const bool accumulate = g.accumulate || at.p > 0, by_rows = row_panels(g), reads = reads_a(g);
  const bool keeps = by.a_kept != GemmBlocking::kNothing, packs = !keeps || at.j == 0;
  const std::int64_t panel = panel_floats(g, by.k), group = by_rows ? 1 : kGroup;
  pack_block_of_b(g, at, k, n, packed.b);
  float* a = packed.a;
  if (by.a_kept == GemmBlocking::kAllK) a += at.p / by.k * (by.m / kTileRows) * panel;
  Upcoming next{{}, source_of_b(g, by, corner_after(g, by, at))};
  for (std::int64_t i = 0; i < m; i += kTileRows) {
    const std::int64_t rows = min(kTileRows, m - i), index = i / kTileRows;
    const float* here =
        reads ? g.a + (at.i + i) * g.a_row + at.p : a + (keeps ? index : index % group) * panel;
    if (reads) {
      next.a = source_of_a(g, at, i + rows, m, k);
    } else if (packs && index % group == 0) {
      const std::int64_t end = min(m, i + group * kTileRows);
      pack_rows_of_a(g, at, i, end - i, k, a + (keeps ? index : 0) * panel, panel);
      next.a = source_of_a(g, at, end, m, k);
    } else if (!packs) {
      next.a = {here + panel, 64, panel / 64, 64, k};
    }
    const TileKernel kernel = tile_of(g, rows, accumulate);
    multiply_panel(kernel, rows, n, accumulate,
                   {k, here, by_rows ? 1 : kTileRows, packed.b, kTileColumns, nullptr, 0, g.a_row},
                   destination(g, by, at, i, packed.sums),
                   destination(g, by, at, i + rows < m ? i + rows : i, packed.sums), next);
  }
}

void gemm(const GemmProblem& g, const GemmBlocking& by, float* workspace) {
  float* b = workspace + round_up(floats_of_a(g, by), 16);
  const Packed packed{workspace, b, b + floats_of_b(by)};
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
