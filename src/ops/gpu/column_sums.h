// Sums over the rows of a matrix on a GPU: the gradients of a norm's weight and bias. Each column
// is one chain over ascending rows, so only columns can be computed at the same time: a block has
// sixteen of them. All its threads load rows, ahead of the sums, and prepare their terms; a group
// of sixteen threads then adds the terms to the chains. Comes after kernels/row_ops.cpp, whose
// definitions of the terms it takes.
#pragma once

#include "ops/kernels/row_ops.h"
#include "ops/kernels/rows.h"

namespace olmo::ops::OLMO_ISA {

constexpr int kRowsEach = 8;              // rows that a thread loads at a time
constexpr int kSumRows = 16 * kRowsEach;  // and all of them: y, y + 16, … is thread (y, x)'s

/// Two numbers of each row and column. While those of one turn are added, others are written.
struct ColumnShared {
  float first[2][kSumRows][16], second[2][kSumRows][16];
};

/// Where the sums of the thread's column begin and go; a null pointer is for none.
struct ColumnSums {
  float *first, *second;
  std::int64_t rows, column;
  bool there, rounds_sums;

  OLMO_INLINE ColumnSums(float* first_sums, float* second_sums, std::int64_t row_count,
                         std::int64_t columns, bool rounds)
      : first(first_sums),
        second(second_sums),
        rows(row_count),
        column(gpu::block_index() * 16 + gpu::lane()),
        there(column < columns),
        rounds_sums(rounds) {}

  OLMO_INLINE float begin(const float* sums) const {
    return there && sums != nullptr ? sums[column] : 0.0F;
  }
  OLMO_INLINE void end(float* sums, float sum) const {
    if (there && sums != nullptr) sums[column] = rounds_sums ? widen(narrow(sum)) : sum;
  }
  /// The thread's row number i of those from `begin` on. What lies beyond the matrix is loaded from
  /// its end, so that no load waits for a comparison, and never added.
  OLMO_INLINE std::int64_t row_at(std::int64_t begin, int i) const {
    const std::int64_t row = begin + gpu::thread_index() / 16 + 16 * i;
    return row < rows ? row : rows - 1;
  }
  OLMO_INLINE std::int64_t column_to_load() const { return there ? column : 0; }
};

/// Eight numbers of a column as they lie in memory. To widen them where they are loaded would wait
/// for each load.
struct ColumnBits {
  std::uint32_t bits[kRowsEach];

  OLMO_INLINE void load(const ColumnSums& sums, const Rows& from, std::int64_t begin) {
    const std::int64_t column = sums.column_to_load();
    if (from.numbers.bf16) {
      const auto* data = static_cast<const Bf16*>(from.numbers.data) + column;
      OLMO_UNROLL for (int i = 0; i < kRowsEach; ++i) bits[i] =
          data[sums.row_at(begin, i) * from.stride].bits;
    } else {
      const auto* data = static_cast<const std::uint32_t*>(from.numbers.data) + column;
      OLMO_UNROLL for (int i = 0; i < kRowsEach; ++i) bits[i] =
          data[sums.row_at(begin, i) * from.stride];
    }
  }
  OLMO_INLINE float at(const Rows& from, int i) const {
    return __builtin_bit_cast(float, from.numbers.bf16 ? bits[i] << 16 : bits[i]);
  }
};

/// `terms` is of the thread's column: load() reads rows ahead, terms_of() makes the two numbers
/// that are kept of one, add_first() and add_second() continue the chains with them.
template <class Terms>
OLMO_INLINE void column_chains(Terms terms, ColumnShared& shared) {
  const int y = gpu::thread_index() / 16, x = gpu::lane();
  // Groups of different warps, so that neither chain waits for the other.
  const bool adds_first = y == 0, adds_second = y == 2;
  float sum = terms.begin(adds_first ? terms.first : terms.second);
  if (terms.rows > 0) terms.load(0);
  int turn = 0;
  for (std::int64_t begin = 0; begin < terms.rows; begin += kSumRows) {
    auto &first = shared.first[turn], &second = shared.second[turn];
    OLMO_UNROLL for (int i = 0; i < kRowsEach; ++i)
        terms.terms_of(i, first[y + 16 * i][x], second[y + 16 * i][x]);
    gpu::sync_block();
    terms.load(begin + kSumRows);
    const std::int64_t rest = terms.rows - begin;
    const int count = rest < kSumRows ? static_cast<int>(rest) : kSumRows;
    if (adds_first) {
      for (int r = 0; r < count; ++r) sum = terms.add_first(sum, first[r][x], second[r][x]);
    } else if (adds_second) {
      for (int r = 0; r < count; ++r) sum = terms.add_second(sum, first[r][x]);
    }
    turn = 1 - turn;
  }
  if (adds_first) terms.end(terms.first, sum);
  if (adds_second) terms.end(terms.second, sum);
}

namespace {

/// Of dweight and dbias of a norm.
template <bool kCentred>
struct NormTerms : ColumnSums {
  const NormBackwardArgs& args;
  bool rounds, rounds_terms;
  ColumnBits dy, x;
  RowStats stats[kRowsEach];

  OLMO_INLINE explicit NormTerms(const NormBackwardArgs& a)
      : ColumnSums(a.dweight, a.dbias, a.rows, a.columns, a.round_parameters),
        args(a),
        rounds(rounds_between<kCentred>(a.x)),
        rounds_terms(rounds && a.weight.bf16) {}

  OLMO_INLINE void load(std::int64_t begin_row) {
    dy.load(*this, args.dy, begin_row);
    x.load(*this, args.x, begin_row);
    OLMO_UNROLL for (int i = 0; i < kRowsEach; ++i) stats[i] =
        stats_of<kCentred>(args.stats, row_at(begin_row, i));
  }
  OLMO_INLINE void terms_of(int i, float& g, float& h) const {
    g = dy.at(args.dy, i);
    const F32x16 normal =
        rounded_if(rounds, normalized<kCentred>(F32x16{x.at(args.x, i)}, stats[i]));
    h = rounds_terms ? round_to_bf16(F32x16{g * normal.v}).v : normal.v;
  }
  OLMO_INLINE float add_first(float sum, float g, float h) const {
    return rounds_terms ? sum + h : gpu::fma(g, h, sum);
  }
  OLMO_INLINE float add_second(float sum, float g) const { return sum + g; }
};

}  // namespace

}  // namespace olmo::ops::OLMO_ISA
