// What the kernels need of a GPU, for NVRTC, for hipRTC or clang, and for the emulator of the
// tests. Blocks and grids have one dimension. Sixteen neighbouring threads are a group: the lanes
// of simd.h. A group never diverges, but its neighbours in a warp may do something else.
//
// OLMO_KERNEL_AT_ONCE(n) declares a kernel of which n blocks of 256 threads fit on a multiprocessor
// at once: the compiler keeps to the registers that this leaves to a thread. Other blocks compute
// while one waits for memory.
#pragma once

#include <cstdint>

#if defined(OLMO_GPU_EMULATOR)

#include "emulator.h"  // tests/ops/gpu

#elif defined(__HIP__)

#define OLMO_KERNEL_AT_ONCE(blocks)             \
  extern "C" __attribute__((global, used)) void \
      __attribute__((amdgpu_flat_work_group_size(1, 256), amdgpu_waves_per_eu(blocks)))
#define OLMO_ATTENTION_BLOCKS 1  // shared memory has room for no more
#define OLMO_SHARED __attribute__((shared))
#define OLMO_UNROLL _Pragma("unroll")
#define OLMO_ROLLED _Pragma("unroll 1")

namespace olmo::gpu {

inline int thread_index() { return static_cast<int>(__builtin_amdgcn_workitem_id_x()); }
inline std::int64_t block_index() { return __builtin_amdgcn_workgroup_id_x(); }

inline void sync_block() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
/// A wavefront runs in step: only the compiler and the memory must keep the order.
inline void sync_group() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
/// x of the thread `lane` of this group.
inline float from_lane(float x, int lane) {
  const int self =
      static_cast<int>(__builtin_amdgcn_mbcnt_hi(~0U, __builtin_amdgcn_mbcnt_lo(~0U, 0U)));
  const int source = (self & ~15) | (lane & 15);
  return __builtin_bit_cast(float,
                            __builtin_amdgcn_ds_bpermute(4 * source, __builtin_bit_cast(int, x)));
}

inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline float divide(float a, float b) { return a / b; }
/// The hardware's root is within 1 ulp.
inline float rough_sqrt(float x) { return __builtin_amdgcn_sqrtf(x); }

}  // namespace olmo::gpu

#else

#define OLMO_KERNEL_AT_ONCE(blocks) extern "C" __global__ void __launch_bounds__(256, blocks)
#define OLMO_ATTENTION_BLOCKS 2
#define OLMO_SHARED __shared__
#define OLMO_UNROLL _Pragma("unroll")
#define OLMO_ROLLED _Pragma("unroll 1")

namespace olmo::gpu {

inline int thread_index() { return static_cast<int>(threadIdx.x); }
inline std::int64_t block_index() { return blockIdx.x; }

inline unsigned group_mask() { return 0xFFFFU << (threadIdx.x & 16U); }
inline void sync_block() { __syncthreads(); }
inline void sync_group() { __syncwarp(group_mask()); }
/// x of the thread `lane` of this group.
inline float from_lane(float x, int lane) { return __shfl_sync(group_mask(), x, lane, 16); }

inline float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
inline float divide(float a, float b) { return __fdiv_rn(a, b); }
#define OLMO_GPU_SQRT __fsqrt_rn

}  // namespace olmo::gpu

#endif

#define OLMO_KERNEL OLMO_KERNEL_AT_ONCE(1)

namespace olmo::gpu {

#if defined(OLMO_GPU_SQRT)
inline float sqrt(float x) { return OLMO_GPU_SQRT(x); }
#else
/// The square root, rounded to nearest, from one within 1 ulp: of its two neighbours one is taken
/// where the exact product with it says that the root lies beyond their middle.
inline float sqrt(float x) {
  const bool small = x < 0x1p-96F;  // there the products below would lose bits
  const float scaled = small ? x * 0x1p32F : x;
  const float s = rough_sqrt(scaled);
  const float down = __builtin_bit_cast(float, __builtin_bit_cast(std::int32_t, s) - 1);
  const float up = __builtin_bit_cast(float, __builtin_bit_cast(std::int32_t, s) + 1);
  float root = fma(-down, s, scaled) <= 0.0F ? down : s;
  root = fma(-up, s, scaled) > 0.0F ? up : root;
  root = small ? root * 0x1p-16F : root;
  const bool exact = x == 0.0F || x == __builtin_bit_cast(float, 0x7F800000);
  return exact ? x : root;
}
#endif

/// Four numbers that one instruction loads or stores.
template <class T>
struct alignas(4 * sizeof(T)) Four {
  T v[4];
};
#if !defined(OLMO_FOUR_AT)
#define OLMO_FOUR_AT(p, bytes)
#endif
template <class T>
inline Four<T> load_four(const T* p) {
  OLMO_FOUR_AT(p, sizeof(Four<T>));
  return *reinterpret_cast<const Four<T>*>(p);
}
/// Four of two bytes. A compiler stores the numbers themselves one by one where a branch, as a
/// quotient has, lies between those that compute them.
struct FourInWord {
  std::uint64_t bits;
};
template <class T>
inline void store_four(T* p, const Four<T>& x) {
  OLMO_FOUR_AT(p, sizeof(Four<T>));
  if constexpr (sizeof(Four<T>) == sizeof(FourInWord)) {
    *reinterpret_cast<FourInWord*>(p) = __builtin_bit_cast(FourInWord, x);
  } else {
    *reinterpret_cast<Four<T>*>(p) = x;
  }
}
template <class T>
inline bool holds_fours(const T* p) {
  return reinterpret_cast<std::uintptr_t>(p) % sizeof(Four<T>) == 0;
}

inline int lane() { return thread_index() & 15; }
/// Number of this thread's group in the grid.
inline std::int64_t group_index(int block_threads) {
  return (block_index() * block_threads + thread_index()) / 16;
}

}  // namespace olmo::gpu
