// The packing of the operands of products: shared by the GEMM and attention kernels.
#pragma once

#include <cstddef>

#include "ops/kernels/extents.h"
#include "ops/kernels/rows.h"
#include "ops/kernels/tile.h"

namespace olmo::ops::OLMO_ISA {

/// dst[p*kWidth + r] = src[r*src_stride + p] for r < rows <= kWidth and p < k; entries r >= rows
/// are unspecified. May write up to kTransposeSize floats past the panel's end.
template <int kWidth>
void pack_transposed(const float* src, std::int64_t src_stride, std::int64_t rows, std::int64_t k,
                     float* dst) {
  constexpr std::int64_t kAhead = 32;
  const std::int64_t whole = k / kTransposeSize * kTransposeSize;
  for (std::int64_t p = 0; p < whole; p += kTransposeSize) {
    if (p + kAhead < k) {
      for (std::int64_t r = 0; r < rows; ++r) __builtin_prefetch(src + r * src_stride + p + kAhead);
    }
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
    for (std::int64_t p = 0; p < k; ++p)
      copy_numbers<kWidth>(src + p * src_stride, dst + p * kWidth);
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

/// Panels of consecutive columns of a row-major source, `panel` floats apart.
template <int kWidth, typename Element>
void pack_columns(const Element* src, std::int64_t src_stride, std::int64_t columns, std::int64_t k,
                  float* dst, std::int64_t panel) {
  // Rows copied for all panels before the next ones: whole lines, few pages, and the first-level
  // cache holds them where all share a set.
  constexpr std::int64_t kRun = 8;
  constexpr std::int64_t kAhead = 16;  // rows: what was fetched long ago may have left the cache
  constexpr std::int64_t kLine = 64 / sizeof(Element);
  for (std::int64_t p = 0; p < k; p += kRun) {
    for (std::int64_t next = p + kAhead; next < smaller(k, p + kAhead + kRun); ++next) {
      for (std::int64_t j = 0; j < columns; j += kLine)
        __builtin_prefetch(src + next * src_stride + j);
    }
    for (std::int64_t j = 0; j < columns; j += kWidth) {
      pack_copied<kWidth>(src + p * src_stride + j, src_stride, smaller(kWidth, columns - j),
                          smaller(kRun, k - p), dst + j / kWidth * panel + p * kWidth);
    }
  }
}

/// dst[i] = src[i].
inline void copy_row(const float* src, std::int64_t n, float* dst) {
  __builtin_memcpy(dst, src, static_cast<std::size_t>(n) * sizeof(float));
}
inline void copy_row(const Bf16* src, std::int64_t n, float* dst) { widen_row(src, n, dst); }

}  // namespace olmo::ops::OLMO_ISA
