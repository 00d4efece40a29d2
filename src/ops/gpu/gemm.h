// The matrix product of kernels/gemm.h on a GPU: a block of threads computes a square tile of C,
// a step of k at a time from shared memory; while it multiplies one step, it loads the next. The
// sums live in registers from the first k to the last, so every output is one chain.
#pragma once

#include "ops/kernels/gemm.h"
#include "ops/simd.h"

namespace olmo::ops::OLMO_ISA {

constexpr int kGemmThreads = 256;  // 16 x 16
constexpr int kGemmStep = 16;      // summed indices in shared memory at a time

/// Where row (or column) `r` of a thread's outputs lies in the tile: runs of four, so that reads of
/// shared memory are wide and neighbours do not collide.
OLMO_INLINE int spread(int place, int r) { return r / 4 * 64 + place * 4 + r % 4; }

/// One operand: element (i, p) is at i * outer + p * inner, in fp32 or bf16.
template <bool kBf16>
struct GemmOperand {
  const float* data;
  const Bf16* bits;
  std::int64_t extent, outer, inner;

  OLMO_INLINE float at(std::int64_t i, std::int64_t p) const {
    const std::int64_t place = i * outer + p * inner;
    if constexpr (kBf16) return widen(bits[place]);
    return data[place];
  }
};

/// kTile elements of an operand for each of kGemmStep indices: a thread's share, and its place.
template <int kTile, bool kBf16>
struct GemmLoader {
  static constexpr int kShare = kTile * kGemmStep / kGemmThreads;
  GemmOperand<kBf16> from;
  std::int64_t first;  ///< of the tile
  float held[kShare];

  OLMO_INLINE void place(int s, int& i, int& p) const {
    const int e = gpu::thread_index() + s * kGemmThreads;
    const bool along_p = from.inner == 1;  // neighbouring threads read neighbouring addresses
    i = along_p ? e / kGemmStep : e % kTile;
    p = along_p ? e % kGemmStep : e / kTile;
  }
  OLMO_INLINE void load(std::int64_t p0, std::int64_t k) {
    for (int s = 0; s < kShare; ++s) {
      int i, p;
      place(s, i, p);
      const bool inside = first + i < from.extent && p0 + p < k;
      held[s] = inside ? from.at(first + i, p0 + p) : 0.0F;
    }
  }
  OLMO_INLINE void store(float (*panel)[kTile + 4]) const {
    for (int s = 0; s < kShare; ++s) {
      int i, p;
      place(s, i, p);
      panel[p][i] = held[s];
    }
  }
};

template <int kTile>
struct GemmPanels {
  float a[2][kGemmStep][kTile + 4], b[2][kGemmStep][kTile + 4];
};

template <int kTile>
OLMO_INLINE void gemm_step(const float* a, const float* b, int row, int column,
                           float (&sum)[kTile / 16][kTile / 16]) {
  constexpr int kEach = kTile / 16;
  float x[kEach], y[kEach];
  for (int r = 0; r < kEach; ++r) x[r] = a[spread(row, r)];
  for (int c = 0; c < kEach; ++c) y[c] = b[spread(column, c)];
  for (int r = 0; r < kEach; ++r) {
    for (int c = 0; c < kEach; ++c) sum[r][c] = gpu::fma(x[r], y[c], sum[r][c]);
  }
}

/// Block number `block` of the tiles of C, row by row.
template <int kTile, bool kBf16>
OLMO_INLINE void gemm_tile(const GemmProblem& g, std::int64_t block, GemmPanels<kTile>& panels) {
  constexpr int kEach = kTile / 16;
  const std::int64_t across = (g.n + kTile - 1) / kTile;
  const std::int64_t i0 = block / across * kTile, j0 = block % across * kTile;
  const int row = gpu::thread_index() / 16, column = gpu::thread_index() % 16;
  GemmLoader<kTile, false> a{{g.a, nullptr, g.m, g.a_row, g.a_k}, i0, {}};
  GemmLoader<kTile, kBf16> b{{g.b, g.b_bf16, g.n, g.b_column, g.b_k}, j0, {}};
  float sum[kEach][kEach];
  for (int r = 0; r < kEach; ++r) {
    for (int c = 0; c < kEach; ++c) {
      const std::int64_t i = i0 + spread(row, r), j = j0 + spread(column, c);
      sum[r][c] = g.accumulate && i < g.m && j < g.n ? g.c[i * g.c_row + j] : 0.0F;
    }
  }
  a.load(0, g.k);
  b.load(0, g.k);
  int half = 0;
  for (std::int64_t p0 = 0; p0 < g.k; p0 += kGemmStep) {
    a.store(panels.a[half]);
    b.store(panels.b[half]);
    gpu::sync_block();
    a.load(p0 + kGemmStep, g.k);
    b.load(p0 + kGemmStep, g.k);
    if (p0 + kGemmStep <= g.k) {
      for (int p = 0; p < kGemmStep; ++p)
        gemm_step<kTile>(panels.a[half][p], panels.b[half][p], row, column, sum);
    } else {  // padding with zeros would turn a sum of -0 into +0
      for (int p = 0; p < g.k - p0; ++p)
        gemm_step<kTile>(panels.a[half][p], panels.b[half][p], row, column, sum);
    }
    half = 1 - half;
  }
  for (int r = 0; r < kEach; ++r) {
    for (int c = 0; c < kEach; ++c) {
      const std::int64_t i = i0 + spread(row, r), j = j0 + spread(column, c);
      if (i < g.m && j < g.n) g.c[i * g.c_row + j] = sum[r][c];
    }
  }
}

}  // namespace olmo::ops::OLMO_ISA
