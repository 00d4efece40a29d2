// The register tile of a matrix product: shared by the GEMM and attention kernels.
#pragma once

#include "ops/kernels/extents.h"
#include "ops/kernels/rows.h"
#include "ops/simd.h"

namespace olmo::ops::OLMO_ISA {

// A tile is kTileRows x kTileColumns accumulators held in registers: 28 of 32 with AVX-512, 12 of
// 16 with AVX2.
#if defined(__AVX512F__)
constexpr int kTileRows = 14;
constexpr int kTileVectors = 2;
#elif defined(__AVX2__)
constexpr int kTileRows = 6;
constexpr int kTileVectors = 1;
#else
constexpr int kTileRows = 4;
constexpr int kTileVectors = 1;
#endif
constexpr int kTileColumns = 16 * kTileVectors;
/// Whether a tile leaves room for more instructions beside its own than one prefetch each: with
/// half the vectors' width there are twice as many of its own for each step of k.
constexpr bool kManyBeside = kTileVectors > 1;

/// In place of a distance of rows of A that is known when kernels are compiled: a_row, with a_k 1.
constexpr int kAnyRow = 0;

/// Operands of one tile: c[i*c_row + j] = or += the chain over p < k of fma(a[i*kARow + p*a_k],
/// b[p*b_k + j]). Whole vectors of b and c are touched: kTileColumns columns must exist.
struct TileOperands {
  std::int64_t k;
  const float* a;
  std::int64_t a_k;
  const float* b;
  std::int64_t b_k;
  float* c;
  std::int64_t c_row;
  std::int64_t a_row = 0;
};

/// Cache lines of a rectangle.
struct Lines {
  const char* first = nullptr;
  std::int64_t count = 0, in_row = 0;  ///< of the rectangle, and of each of its rows
  std::int64_t to_next_row = 0;        ///< bytes from a row's last line to the next row's first
};

/// Rows of a matrix that become rows of panels: pieces of kTileRows or, if `wide`, of kTileColumns
/// numbers. Distances are in floats.
struct Copies {
  const float* from = nullptr;
  float* to = nullptr;
  std::int64_t count = 0, in_row = 0;       ///< pieces in all, and of each row
  std::int64_t from_step = 0, to_step = 0;  ///< from piece to piece of a row
  std::int64_t from_next = 0, to_next = 0;  ///< from a row's last piece to the next row's first
  std::int64_t ahead = 0;                   ///< how far before its copy a piece is fetched
  bool wide = false;
};

/// What is done for what comes next while a tile is computed, where multiplications leave loads and
/// stores idle: lines to be read are fetched, those of the next tile of C to be written, and
/// numbers are copied. At most one of each in every four steps of k, because lines asked for at
/// once fill the buffers that the tile's own loads need.
struct Beside {
  Lines read, written;
  Copies copied;
};

/// The elements of A that one step of k takes.
template <int kARow>
class StepOfA {
 public:
  OLMO_INLINE explicit StepOfA(const TileOperands& t) : first_(t.a), a_k_(t.a_k) {}
  [[nodiscard]] OLMO_INLINE float row(int i) const { return first_[i * kARow]; }
  OLMO_INLINE void advance() { first_ += a_k_; }

 private:
  const float* first_;
  std::int64_t a_k_;
};

/// Three distances in bytes serve fourteen rows, for there are few registers: an address is a start
/// plus one of them, once, twice or four times.
template <>
class StepOfA<kAnyRow> {
 public:
  OLMO_INLINE explicit StepOfA(const TileOperands& t)
      : one_(t.a_row * static_cast<std::int64_t>(sizeof(float))),
        three_(3 * one_),
        five_(5 * one_),
        first_(reinterpret_cast<const char*>(t.a)),
        eighth_(first_ + kHalf * one_) {}

  [[nodiscard]] OLMO_INLINE float row(int i) const {
    const char* half = i < kHalf ? first_ : eighth_;
    const int r = i % kHalf;
    const std::int64_t distance = r == 3 ? three_ : r == 5 ? five_ : r == 6 ? 2 * three_ : r * one_;
    return *reinterpret_cast<const float*>(half + distance);
  }
  OLMO_INLINE void advance() {
    first_ += sizeof(float);
    eighth_ += sizeof(float);
  }

 private:
  static constexpr int kHalf = 7;
  std::int64_t one_, three_, five_;
  const char *first_, *eighth_;
};

/// One step of k, of the rows from kFirst to before kEnd.
template <int kRows, int kARow, int kFirst = 0, int kEnd = kRows>
OLMO_INLINE void tile_step(const StepOfA<kARow>& a, const float* b,
                           F32x16 (&sum)[kRows][kTileVectors]) {
  F32x16 row[kTileVectors];
#pragma GCC unroll 2
  for (int j = 0; j < kTileVectors; ++j) row[j] = load(b + 16 * j);
#pragma GCC unroll 16
  for (int i = kFirst; i < kEnd; ++i) {
    const F32x16 value = broadcast(a.row(i));
#pragma GCC unroll 2
    for (int j = 0; j < kTileVectors; ++j) accumulate(sum[i][j], value, row[j]);
  }
}

/// Four steps of k.
template <int kRows, int kARow>
OLMO_INLINE void tile_steps(StepOfA<kARow>& a, const float*& b, const TileOperands& t,
                            F32x16 (&sum)[kRows][kTileVectors]) {
#pragma GCC unroll 4
  for (int step = 0; step < 4; ++step) {
    tile_step<kRows, kARow>(a, b, sum);
    a.advance();
    b += t.b_k;
  }
}

/// Fetches lines one by one.
template <bool kWrites>
class LinesInTurn {
 public:
  OLMO_INLINE explicit LinesInTurn(const Lines& lines)
      : line_(lines.first),
        left_(lines.count),
        in_row_(lines.in_row),
        left_in_row_(lines.in_row),
        to_next_row_(lines.to_next_row) {}

  OLMO_INLINE void fetch() {
    if (left_ > 0) fetch_next();
  }
  /// There must be one.
  OLMO_INLINE void fetch_next() {
    __builtin_prefetch(line_, kWrites ? 1 : 0, kWrites ? 3 : 2);
    --left_;
    --left_in_row_;
    line_ += left_in_row_ == 0 ? to_next_row_ : 64;
    left_in_row_ = left_in_row_ == 0 ? in_row_ : left_in_row_;
  }

 private:
  const char* line_;
  std::int64_t left_, in_row_, left_in_row_, to_next_row_;
};

/// kWidth numbers.
template <int kWidth>
OLMO_INLINE void copy_numbers(const float* from, float* to) {
  if constexpr (kWidth > 8 && kWidth < 16) {  // one masked move instead of three
    store_n(to, load_n(from, kWidth), kWidth);
  } else {
    __builtin_memcpy(to, from, kWidth * sizeof(float));
  }
}

/// Copies piece by piece.
class CopiesInTurn {
 public:
  OLMO_INLINE explicit CopiesInTurn(const Copies& copies)
      : c_(copies),
        from_(copies.from),
        to_(copies.to),
        left_(copies.count),
        left_in_row_(copies.in_row) {}

  OLMO_INLINE void copy() {
    if (left_ <= 0) return;
    __builtin_prefetch(from_ + c_.ahead, 0, 2);
    if (c_.wide) {
      if constexpr (kTileColumns > 16) __builtin_prefetch(from_ + c_.ahead + 16, 0, 2);
      copy_numbers<kTileColumns>(from_, to_);
    } else {
      copy_numbers<kTileRows>(from_, to_);
    }
    --left_;
    --left_in_row_;
    from_ += left_in_row_ == 0 ? c_.from_next : c_.from_step;
    to_ += left_in_row_ == 0 ? c_.to_next : c_.to_step;
    left_in_row_ = left_in_row_ == 0 ? c_.in_row : left_in_row_;
  }

 private:
  const Copies& c_;
  const float* from_;
  float* to_;
  std::int64_t left_, left_in_row_;
};

template <bool kAccumulate, int kRows>
OLMO_INLINE void begin_sums(const TileOperands& t, F32x16 (&sum)[kRows][kTileVectors]) {
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kTileVectors; ++j)
      sum[i][j] = kAccumulate ? load(t.c + i * t.c_row + 16 * j) : zero();
  }
}

template <int kRows>
OLMO_INLINE void store_sums(const TileOperands& t, const F32x16 (&sum)[kRows][kTileVectors]) {
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kTileVectors; ++j) store(t.c + i * t.c_row + 16 * j, sum[i][j]);
  }
}

/// The steps of k from `p` on.
template <int kRows, int kARow>
OLMO_INLINE void remaining_steps(std::int64_t p, StepOfA<kARow>& a, const float*& b,
                                 const TileOperands& t, F32x16 (&sum)[kRows][kTileVectors]) {
#pragma GCC unroll 2
  for (; p < t.k; ++p) {
    tile_step<kRows, kARow>(a, b, sum);
    a.advance();
    b += t.b_k;
  }
}

/// A lambda without arguments, always inlined: clang would call some.
#define OLMO_WORK () __attribute__((always_inline))

/// The whole groups of four steps of k, with what is done beside them. Returns their number.
template <int kRows, int kARow>
OLMO_INLINE std::int64_t groups_beside(const Beside& beside, StepOfA<kARow>& a, const float*& b,
                                       const TileOperands& t, F32x16 (&sum)[kRows][kTileVectors]) {
  LinesInTurn<false> read(beside.read), far(beside.written);
  LinesInTurn<true> near(beside.written);
  CopiesInTurn copied(beside.copied);
  const std::int64_t groups = t.k / 4, lines_read = smaller(groups, beside.read.count),
                     lines_written = smaller(groups, beside.written.count);
  std::int64_t group = 0;
  const auto until = [&](std::int64_t end, const auto& work) __attribute__((always_inline)) {
    for (; group < end; ++group) {
      work();
      tile_steps<kRows, kARow>(a, b, t, sum);
    }
  };
  if constexpr (kManyBeside) {
    // The next tile of C comes into the second-level cache early and into the first one late.
    until(groups - beside.written.count - 1, [&] OLMO_WORK {
      read.fetch();
      far.fetch();
      copied.copy();
    });
    until(groups, [&] OLMO_WORK {
      read.fetch();
      near.fetch();
      copied.copy();
    });
  } else {
    // Loops that need not ask whether a line is left: where another thread shares the core, every
    // instruction takes the place of a multiplication.
    until(smaller(lines_read, lines_written), [&] OLMO_WORK {
      read.fetch_next();
      near.fetch_next();
    });
    until(lines_written, [&] OLMO_WORK { near.fetch_next(); });
    until(lines_read, [&] OLMO_WORK { read.fetch_next(); });
    until(groups, [] OLMO_WORK {});
  }
  return groups;
}

#undef OLMO_WORK

template <int kRows, int kARow, bool kAccumulate, bool kBeside>
void tile_kernel(const TileOperands& operands, const Beside& beside) {
  TileOperands t = operands;
  if constexpr (kBeside) {  // known to the compiler, which so has registers left for the rest
    t.a_k = kARow == 1 ? kTileRows : 1;
    t.b_k = kTileColumns;
  }
  StepOfA<kARow> a(t);
  const float* b = t.b;
  F32x16 sum[kRows][kTileVectors];
  begin_sums<kAccumulate>(t, sum);
  std::int64_t p = 0;
  if constexpr (kBeside) p = 4 * groups_beside<kRows, kARow>(beside, a, b, t, sum);
  remaining_steps<kRows, kARow>(p, a, b, t, sum);
  store_sums(t, sum);
}

using TileKernel = void (*)(const TileOperands&, const Beside&);

/// The kernel for a tile of `rows` (1..kTileRows) rows. Only whole tiles do
/// anything beside.
template <int kARow, bool kBeside, int kRows = kTileRows>
OLMO_INLINE TileKernel pick_tile(std::int64_t rows, bool accumulate) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return pick_tile<kARow, false, kRows - 1>(rows, accumulate);
  }
  return accumulate ? tile_kernel<kRows, kARow, true, kBeside>
                    : tile_kernel<kRows, kARow, false, kBeside>;
}

/// One tile of `rows` (1..kTileRows) rows.
template <int kARow>
OLMO_INLINE void tile(std::int64_t rows, bool accumulate, const TileOperands& operands) {
  pick_tile<kARow, false>(rows, accumulate)(operands, {});
}

/// Which side of a tile's steps is a triangle of kRows steps: its first ones, of which row i takes
/// those from the i-th on, or its last ones, of which row i takes the first i + 1.
enum class Triangle { kFirst, kLast };

template <Triangle kSide, int kRows, int kARow, int kStep = 0>
OLMO_INLINE void triangle_steps(StepOfA<kARow>& a, const float*& b, const TileOperands& t,
                                F32x16 (&sum)[kRows][kTileVectors]) {
  if constexpr (kStep < kRows) {
    constexpr bool kGrows = kSide == Triangle::kFirst;
    constexpr int kFirst = kStep * static_cast<int>(!kGrows);
    tile_step<kRows, kARow, kFirst, kGrows ? kStep + 1 : kRows>(a, b, sum);
    a.advance();
    b += t.b_k;
    triangle_steps<kSide, kRows, kARow, kStep + 1>(a, b, t, sum);
  }
}

/// Continues the chains of c over t.k whole steps and the triangle beside them. What the triangle
/// leaves out is not multiplied by zero but not at all.
template <Triangle kSide, int kARow, int kRows = kTileRows>
void triangle_tile(std::int64_t rows, const TileOperands& t) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return triangle_tile<kSide, kARow, kRows - 1>(rows, t);
  }
  StepOfA<kARow> a(t);
  const float* b = t.b;
  F32x16 sum[kRows][kTileVectors];
  begin_sums<true>(t, sum);
  if constexpr (kSide == Triangle::kFirst) triangle_steps<kSide, kRows, kARow>(a, b, t, sum);
  remaining_steps<kRows, kARow>(0, a, b, t, sum);
  if constexpr (kSide == Triangle::kLast) triangle_steps<kSide, kRows, kARow>(a, b, t, sum);
  store_sums(t, sum);
}

}  // namespace olmo::ops::OLMO_ISA
