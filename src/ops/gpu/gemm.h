// The matrix product of kernels/gemm.h on a GPU: a block of threads computes a square tile of C,
// a step of k at a time from shared memory; while it multiplies one step, it loads the next. The
// sums live in registers from the first k to the last, so every output is one chain.
#pragma once

#include "ops/kernels/gemm.h"
#include "ops/kernels/rows.h"

namespace olmo::ops::OLMO_ISA {

constexpr int kGemmThreads = 256;  // 16 x 16

/// Summed indices in shared memory at a time: in each step, a thread loads four elements of each
/// operand.
template <int kTile>
constexpr int kGemmStep = 4 * kGemmThreads / kTile;

/// A thread's place among the 16 x 16. A warp is 4 x 8 of them: what it reads of an operand at a
/// time then lies in 128 bytes of shared memory at most.
struct GemmPlace {
  int row, column;

  OLMO_INLINE GemmPlace() {
    const int warp = gpu::thread_index() / 32, in_warp = gpu::thread_index() % 32;
    row = warp / 2 * 4 + in_warp / 8;
    column = warp % 2 * 8 + in_warp % 8;
  }
};

/// Where row (or column) `r` of a thread's outputs lies in the tile: runs of four, so that reads of
/// shared memory are wide and neighbours do not collide.
OLMO_INLINE int spread(int place, int r) { return r / 4 * 64 + place * 4 + r % 4; }

/// One operand of a tile, from its first row (or column) on: element (i, p) is at i * outer +
/// p * inner, one of which is 1.
template <class T>
struct GemmOperand {
  const T* data;
  int rows;  ///< that exist
  std::int64_t outer, inner;
};

/// A thread's four neighbours of an operand in each step: of a row where those are dense, else of
/// an index p.
template <int kTile, class T>
struct GemmLoader {
  static constexpr int kStep = kGemmStep<kTile>;
  const T* next;
  std::int64_t advance, between;  ///< of `next` in a step; of the four
  int i, p;                       ///< their place in the panel
  int left;  ///< indices from the first of the four on; rows, if they are those
  bool along_p, wide;
  gpu::Four<T> held;

  OLMO_INLINE GemmLoader(const GemmOperand<T>& from, int k) {
    const int t = gpu::thread_index();
    along_p = from.inner == 1;
    i = along_p ? t / (kStep / 4) : t % (kTile / 4) * 4;
    p = along_p ? t % (kStep / 4) * 4 : t / (kTile / 4);
    next = from.data + i * from.outer + p * from.inner;
    advance = kStep * from.inner;
    between = along_p ? from.inner : from.outer;
    wide = gpu::holds_fours(from.data) && (along_p ? from.outer : from.inner) % 4 == 0 &&
           (along_p ? k : from.rows) % 4 == 0;
    left = along_p ? (i < from.rows ? 4 : 0) : from.rows - i;
  }

  /// `rest`: summed indices from the step's first on.
  OLMO_INLINE void load(int rest) {
    const int count = along_p ? (left > 0 ? rest - p : 0) : (p < rest ? left : 0);
    if (wide) {
      held = count > 0 ? gpu::load_four(next) : gpu::Four<T>{};
    } else {
      for (int c = 0; c < 4; ++c) held.v[c] = c < count ? next[c * between] : T{};
    }
    next += advance;
  }
  OLMO_INLINE void store(float (*panel)[kTile + 4]) const {
    gpu::Four<float> four;
    for (int c = 0; c < 4; ++c) four.v[c] = value_of(held.v[c]);
    if (along_p) {
      for (int c = 0; c < 4; ++c) panel[p + c][i] = four.v[c];
    } else {
      gpu::store_four(&panel[p][i], four);
    }
  }
};

template <int kTile>
struct alignas(16) GemmPanels {
  float a[2][kGemmStep<kTile>][kTile + 4], b[2][kGemmStep<kTile>][kTile + 4];
};

template <int kEach>
OLMO_INLINE void gemm_step(const float* a, const float* b, const GemmPlace& place,
                           float (&sum)[kEach][kEach]) {
  float x[kEach], y[kEach];
  OLMO_UNROLL for (int r = 0; r < kEach; ++r) x[r] = a[spread(place.row, r)];
  OLMO_UNROLL for (int c = 0; c < kEach; ++c) y[c] = b[spread(place.column, c)];
  OLMO_UNROLL for (int r = 0; r < kEach; ++r) {
    OLMO_UNROLL for (int c = 0; c < kEach; ++c) sum[r][c] = gpu::fma(x[r], y[c], sum[r][c]);
  }
}

/// A thread's outputs: where the sums begin, and where they go when they are whole.
template <int kEach>
struct GemmOutput {
  const GemmProblem& g;
  std::int64_t first_row, first_column;

  OLMO_INLINE GemmOutput(const GemmProblem& problem, const GemmPlace& place, std::int64_t i0,
                         std::int64_t j0)
      : g(problem), first_row(i0 + 4 * place.row), first_column(j0 + 4 * place.column) {}

  OLMO_INLINE void begin(float (&sum)[kEach][kEach]) const {
    for (auto& row : sum) {
      for (float& x : row) x = 0.0F;
    }
    if (!g.accumulate) return;
    for_each_four(sum, [&](float* four, std::int64_t at, std::int64_t count) {
      for (int c = 0; c < 4; ++c) {
        if (c < count) four[c] = g.c[at + c];
      }
    });
  }

  OLMO_INLINE void store(float (&sum)[kEach][kEach]) const {
    const bool narrows = g.c_bf16 != nullptr, rounds = narrows || g.rounds_c;
    const bool wide =
        g.c_row % 4 == 0 && (narrows ? gpu::holds_fours(g.c_bf16) : gpu::holds_fours(g.c));
    for_each_four(sum, [&](const float* four, std::int64_t at, std::int64_t count) {
      gpu::Four<float> x;
      gpu::Four<Bf16> bits;
      for (int i = 0; i < 4; ++i) {
        bits.v[i] = narrow(four[i]);
        x.v[i] = rounds ? widen(bits.v[i]) : four[i];
      }
      if (narrows) {
        store_some(g.c_bf16 + at, bits, wide, count);
      } else {
        store_some(g.c + at, x, wide, count);
      }
    });
  }

 private:
  template <class T>
  OLMO_INLINE static void store_some(T* c, const gpu::Four<T>& x, bool wide, std::int64_t count) {
    if (wide && count >= 4) {
      gpu::store_four(c, x);
    } else {
      for (int i = 0; i < 4; ++i) {
        if (i < count) c[i] = x.v[i];
      }
    }
  }
  /// Calls work(sums, where the first lies in C, how many of four C has).
  template <class Work>
  OLMO_INLINE void for_each_four(float (&sum)[kEach][kEach], const Work& work) const {
    OLMO_UNROLL for (int r = 0; r < kEach; ++r) {
      const std::int64_t i = first_row + spread(0, r);
      OLMO_UNROLL for (int c = 0; c < kEach; c += 4) {
        const std::int64_t j = first_column + spread(0, c);
        if (i < g.m && j < g.n) work(&sum[r][c], i * g.c_row + j, g.n - j);
      }
    }
  }
};

/// Block number `block` of the tiles of C, row by row. Extents are below 2^31.
template <int kTile, class A, class B>
OLMO_INLINE void gemm_tile(const GemmProblem& g, const A* a_data, const B* b_data,
                           GemmPanels<kTile>& panels) {
  constexpr int kEach = kTile / 16, kStep = kGemmStep<kTile>;
  const auto across = static_cast<unsigned>((g.n + kTile - 1) / kTile);
  const auto block = static_cast<unsigned>(gpu::block_index());
  const std::int64_t i0 = std::int64_t{block / across} * kTile;
  const std::int64_t j0 = std::int64_t{block % across} * kTile;
  const auto k = static_cast<int>(g.k);
  GemmLoader<kTile, A> a({a_data + i0 * g.a_row, static_cast<int>(g.m - i0), g.a_row, g.a_k}, k);
  GemmLoader<kTile, B> b({b_data + j0 * g.b_column, static_cast<int>(g.n - j0), g.b_column, g.b_k},
                         k);
  const GemmPlace place;
  const GemmOutput<kEach> output(g, place, i0, j0);
  float sum[kEach][kEach];
  output.begin(sum);
  a.load(k);
  b.load(k);
  int half = 0;
  for (int rest = k; rest > 0; rest -= kStep) {
    a.store(panels.a[half]);
    b.store(panels.b[half]);
    gpu::sync_block();
    a.load(rest - kStep);
    b.load(rest - kStep);
    if (rest >= kStep) {
      OLMO_UNROLL for (int p = 0; p < kStep; ++p)
          gemm_step(panels.a[half][p], panels.b[half][p], place, sum);
    } else {  // padding with zeros would turn a sum of -0 into +0
      for (int p = 0; p < rest; ++p) gemm_step(panels.a[half][p], panels.b[half][p], place, sum);
    }
    half = 1 - half;
  }
  output.store(sum);
}

}  // namespace olmo::ops::OLMO_ISA
