// The register tile of a matrix product and the packing of its operands: shared by the GEMM and
// attention kernels.
#pragma once

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

/// What to fetch while a tile is computed: lines to be read, and those of the tile of C that comes
/// next, to be written. At most one of each in every four steps of k, because lines asked for at
/// once fill the buffers that the tile's own loads need.
struct Prefetch {
  Lines read, written;
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
    if (left_ <= 0) return;
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

template <int kRows, int kARow, bool kAccumulate, bool kPrefetch>
void tile_kernel(const TileOperands& operands, const Prefetch& prefetch) {
  TileOperands t = operands;
  if constexpr (kPrefetch) {  // known to the compiler, which so has registers left for the rest
    t.a_k = kARow == 1 ? kTileRows : 1;
    t.b_k = kTileColumns;
  }
  StepOfA<kARow> a(t);
  const float* b = t.b;
  F32x16 sum[kRows][kTileVectors];
  begin_sums<kAccumulate>(t, sum);
  std::int64_t p = 0;
  if constexpr (kPrefetch) {
    LinesInTurn<false> read(prefetch.read);
    LinesInTurn<true> written(prefetch.written);
    for (; p + 4 <= t.k; p += 4) {
      read.fetch();
      written.fetch();
      tile_steps<kRows, kARow>(a, b, t, sum);
    }
  }
  remaining_steps<kRows, kARow>(p, a, b, t, sum);
  store_sums(t, sum);
}

using TileKernel = void (*)(const TileOperands&, const Prefetch&);

/// The kernel for a tile of `rows` (1..kTileRows) rows. Only whole tiles prefetch.
template <int kARow, bool kPrefetch, int kRows = kTileRows>
OLMO_INLINE TileKernel pick_tile(std::int64_t rows, bool accumulate) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return pick_tile<kARow, false, kRows - 1>(rows, accumulate);
  }
  return accumulate ? tile_kernel<kRows, kARow, true, kPrefetch>
                    : tile_kernel<kRows, kARow, false, kPrefetch>;
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

/// dst[p*kWidth + r] = src[r*src_stride + p] for r < rows <= kWidth and p < k; entries r >= rows
/// are unspecified. May write up to kTransposeSize floats past the panel's end.
template <int kWidth>
void pack_transposed(const float* src, std::int64_t src_stride, std::int64_t rows, std::int64_t k,
                     float* dst) {
  constexpr std::int64_t kAhead = 32;
  const std::int64_t whole = k / kTransposeSize * kTransposeSize;
  for (std::int64_t p = 0; p < whole; p += kTransposeSize) {
    for (std::int64_t r = 0; r < rows; ++r) __builtin_prefetch(src + r * src_stride + p + kAhead);
    for (int r = 0; r < kWidth && r < rows; r += kTransposeSize) {
      transpose_block(src + r * src_stride + p, src_stride, rows - r, dst + p * kWidth + r, kWidth);
    }
  }
  for (std::int64_t p = whole; p < k; ++p) {
    for (std::int64_t r = 0; r < kWidth; ++r) {
      dst[p * kWidth + r] = src[(r < rows ? r : rows - 1) * src_stride + p];
    }
  }
}

/// The same of bf16, widened on the way.
template <int kWidth>
void pack_transposed(const Bf16* src, std::int64_t src_stride, std::int64_t rows, std::int64_t k,
                     float* dst) {
  constexpr std::int64_t kRun = 64;
  float run[kWidth * kRun];
  for (std::int64_t p = 0; p < k; p += kRun) {
    const std::int64_t count = k - p < kRun ? k - p : kRun;
    for (std::int64_t r = 0; r < rows; ++r)
      widen_row(src + r * src_stride + p, count, run + r * kRun);
    pack_transposed<kWidth>(run, kRun, rows, count, dst + p * kWidth);
  }
}

/// dst[p*kWidth + r] = src[p*src_stride + r] for r < rows <= kWidth and p < k; entries r >= rows
/// are zero.
template <int kWidth>
void pack_copied(const float* src, std::int64_t src_stride, std::int64_t rows, std::int64_t k,
                 float* dst) {
  if (rows == kWidth) {
    for (std::int64_t p = 0; p < k; ++p) {
      if constexpr (kWidth > 8 && kWidth < 16) {  // one masked move instead of three
        store_n(dst + p * kWidth, load_n(src + p * src_stride, kWidth), kWidth);
      } else {
        __builtin_memcpy(dst + p * kWidth, src + p * src_stride, kWidth * sizeof(float));
      }
    }
    return;
  }
  for (std::int64_t p = 0; p < k; ++p) {
    for (std::int64_t r = 0; r < kWidth; ++r) {
      dst[p * kWidth + r] = r < rows ? src[p * src_stride + r] : 0.0F;
    }
  }
}

/// The same of bf16, widened on the way.
template <int kWidth>
void pack_copied(const Bf16* src, std::int64_t src_stride, std::int64_t rows, std::int64_t k,
                 float* dst) {
  for (std::int64_t p = 0; p < k; ++p) {
    const Bf16* from = src + p * src_stride;
    float* to = dst + p * kWidth;
    if (rows != kWidth) {
      for (std::int64_t r = 0; r < kWidth; ++r) to[r] = r < rows ? widen(from[r]) : 0.0F;
    } else if constexpr (kWidth % 16 == 0) {  // NOLINT(bugprone-branch-clone): discarded ones
#pragma GCC unroll 2
      for (int r = 0; r < kWidth; r += 16) store(to + r, load(from + r));
    } else if constexpr (kWidth > 8) {
      store_n(to, load_n(from, kWidth), kWidth);
    } else {
      widen_row(from, kWidth, to);
    }
  }
}

}  // namespace olmo::ops::OLMO_ISA
