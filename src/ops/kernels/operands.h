// The operands of a matrix product as its tiles read them: which are packed, where, and when.
#pragma once

#include <cstdint>

#include "ops/kernels/extents.h"
#include "ops/kernels/gemm.h"
#include "ops/kernels/packer.h"
#include "ops/kernels/tile.h"

namespace olmo::ops::OLMO_ISA {

constexpr std::int64_t kGroup = 8;  // panels of A packed together: copies read whole cache lines

/// A whose rows are contiguous is read where it lies, or packed by copying them; any other is
/// packed as [k][kTileRows]. Nothing transposes.
inline bool row_panels(const GemmProblem& g) { return g.a_k == 1 && g.a_row != 1; }

/// Rows that share the sets of the first-level cache are copied, and bf16 is, to be widened.
inline bool reads_a(const GemmProblem& g) {
  constexpr std::int64_t kSets = 1024;  // floats after which the sets repeat
  return row_panels(g) && g.a_bf16 == nullptr && g.a_row % kSets != 0;
}

/// From a row of A that a tile reads to the next, where A's rows are contiguous. Copied ones lie an
/// odd number of cache lines apart, and so do not share cache sets.
inline std::int64_t row_of_a(const GemmProblem& g, const GemmBlocking& by) {
  return reads_a(g) ? g.a_row : rounded_up(by.k, 32) + 16;
}

inline std::int64_t panel_floats(const GemmProblem& g, const GemmBlocking& by) {
  return kTileRows * (row_panels(g) ? row_of_a(g, by) : by.k);
}

inline std::int64_t panels_in_group(const GemmProblem& g) { return row_panels(g) ? 1 : kGroup; }

inline std::int64_t group_floats(const GemmProblem& g, const GemmBlocking& by) {
  return rounded_up(panels_in_group(g) * panel_floats(g, by), 16);
}

inline std::int64_t floats_of_a(const GemmProblem& g, const GemmBlocking& by) {
  if (reads_a(g)) return 0;
  if (by.a_kept == GemmBlocking::kNothing) {  // a group in use and the next one
    return 2 * group_floats(g, by);
  }
  const std::int64_t k_blocks =
      by.a_kept == GemmBlocking::kAllK ? larger(1, parts_of(g.k, by.k)) : 1;
  return k_blocks * (by.m / kTileRows) * panel_floats(g, by);
}

inline std::int64_t floats_of_b(const GemmBlocking& by) {
  constexpr std::int64_t kSlack = 32;
  return rounded_up(by.n * by.k + kSlack, 16);
}

/// A block in use and the next one, if there is one.
inline std::int64_t blocks_of_b(const GemmProblem& g, const GemmBlocking& by) {
  return g.k > by.k || g.n > by.n || g.m > by.m ? 2 : 1;
}

/// Where a block begins: rows of C, columns of C, summed indices.
struct Corner {
  std::int64_t i, j, p;
};

/// The corner of the block of B that follows.
inline Corner corner_after(const GemmProblem& g, const GemmBlocking& by, Corner at) {
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

inline Packer packer_of_b(const GemmProblem& g, const GemmBlocking& by, const Corner& at,
                          float* to) {
  if (at.i >= g.m) return {};
  const std::int64_t k = smaller(by.k, g.k - at.p), n = smaller(by.n, g.n - at.j),
                     first = at.p * g.b_k + at.j * g.b_column;
  const bool transposed = g.b_k == 1 && g.b_column != 1;
  const Layout layout = transposed ? Layout::kTransposed : Layout::kColumnsOfB;
  const std::int64_t stride = transposed ? g.b_column : g.b_k, rows = transposed ? n : k,
                     length = transposed ? k : n, lines = by.k / 4;
  return {layout, source(g.b, g.b_bf16, first), stride, rows, length, to, kTileColumns * k, lines};
}

/// The group of panels of A from row `row` of the block at `at` on, or the rows that are read where
/// they lie.
inline Packer packer_of_a(const GemmProblem& g, const GemmBlocking& by, const Corner& at,
                          std::int64_t row, float* to) {
  const std::int64_t i = at.i + row, k = smaller(by.k, g.k - at.p),
                     first = i * g.a_row + at.p * g.a_k;
  const bool by_rows = row_panels(g);
  const std::int64_t most = panels_in_group(g) * kTileRows,
                     m = smaller(most, smaller(at.i + by.m, g.m) - i);
  const Layout layout = reads_a(g) ? Layout::kNone : by_rows ? Layout::kRows : Layout::kColumnsOfA;
  const std::int64_t stride = by_rows ? g.a_row : g.a_k, rows = by_rows ? m : k,
                     length = by_rows ? k : m, lines = k / 4,
                     panel = by_rows ? row_of_a(g, by) : panel_floats(g, by);
  return {layout, source(g.a, g.a_bf16, first), stride, rows, length, to, panel, lines};
}

/// The packed operands of a product: those in use, and those that come next.
class Operands {
 public:
  Operands(const GemmProblem& g, const GemmBlocking& by, float* workspace)
      : g_(g), by_(by), panel_(panel_floats(g, by)), a_(workspace) {
    b_ = workspace + rounded_up(floats_of_a(g, by), 16);
    sums_ = b_ + blocks_of_b(g, by) * floats_of_b(by);
    next_b_ = packer_of_b(g, by, {0, 0, 0}, b_);
    if (by.a_kept == GemmBlocking::kNothing) next_a_ = packer_of_a(g, by, {0, 0, 0}, 0, a_);
  }

  [[nodiscard]] float* sums() const { return sums_; }

  /// The block of B at `at`, packed. Begins with the one that follows.
  const float* block_of_b(const Corner& at) {
    next_b_.finish();
    const float* block = place(b_, second_b_, floats_of_b(by_));
    second_b_ = !second_b_;
    next_b_ =
        packer_of_b(g_, by_, corner_after(g_, by_, at), place(b_, second_b_, floats_of_b(by_)));
    return block;
  }

  /// The panel of A whose first row is `row` of the block at `at`. Begins with what follows.
  const float* panel_of_a(const Corner& at, std::int64_t row) {
    if (reads_a(g_)) {
      begin_a_after(at, row + kTileRows, nullptr);
      return g_.a + (at.i + row) * g_.a_row + at.p;
    }
    return by_.a_kept == GemmBlocking::kNothing ? panel_of_group(at, row) : kept_panel(at, row);
  }

  /// Packs what the tile before has fetched. Says what the next one is to read and copy, of which
  /// it can do so many pieces.
  void begin_tile(std::int64_t pieces, Beside& beside) {
    next_a_.pack();
    next_b_.pack();
    if (pieces == 0) return;
    Packer& next = next_a_.all_taken() ? next_b_ : next_a_;
    if (next.all_taken()) return;
    if (next.is_copied(pieces)) {
      beside.copied = next.copies(pieces);
    } else {
      beside.read = next.fetch();
    }
  }

 private:
  static float* place(float* first, bool second, std::int64_t floats) {
    return second ? first + floats : first;
  }

  void begin_a_after(const Corner& at, std::int64_t row, float* to) {
    const bool in_block = row < smaller(by_.m, g_.m - at.i);
    const Corner corner = in_block ? at : corner_after(g_, by_, at);
    next_a_ = corner.i < g_.m ? packer_of_a(g_, by_, corner, in_block ? row : 0, to) : Packer{};
  }

  const float* panel_of_group(const Corner& at, std::int64_t row) {
    const std::int64_t group = panels_in_group(g_), index = row / kTileRows % group;
    if (index == 0) {
      next_a_.finish();
      group_ = place(a_, second_a_, group_floats(g_, by_));
      second_a_ = !second_a_;
      begin_a_after(at, row + group * kTileRows, place(a_, second_a_, group_floats(g_, by_)));
    }
    return group_ + index * panel_;
  }

  const float* kept_panel(const Corner& at, std::int64_t row) {
    const std::int64_t group = panels_in_group(g_), index = row / kTileRows;
    float* here = a_ + index * panel_;
    if (by_.a_kept == GemmBlocking::kAllK) here += at.p / by_.k * (by_.m / kTileRows) * panel_;
    if (at.j > 0) {
      next_a_ = {Layout::kNone, {here + panel_, false}, 64, panel_ / 64, 64, nullptr, 0, by_.k / 4};
    } else if (index % group == 0) {
      if (row == 0) next_a_ = packer_of_a(g_, by_, at, 0, here);
      next_a_.finish();
      const std::int64_t next = row + group * kTileRows;
      next_a_ = next < smaller(by_.m, g_.m - at.i)
                    ? packer_of_a(g_, by_, at, next, here + group * panel_)
                    : Packer{};
    }
    return here;
  }

  const GemmProblem& g_;
  const GemmBlocking& by_;
  std::int64_t panel_;
  float *a_, *b_, *sums_;
  const float* group_ = nullptr;
  bool second_a_ = false, second_b_ = false;
  Packer next_a_, next_b_;
};

}  // namespace olmo::ops::OLMO_ISA
