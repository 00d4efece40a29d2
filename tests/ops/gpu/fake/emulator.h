// The platform of ops/gpu/platform.h on a CPU: the threads of a block are fibers, which take turns
// at every synchronisation. Blocks run one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#define OLMO_KERNEL_AT_ONCE(blocks) extern "C" __attribute__((visibility("hidden"))) void
#define OLMO_ATTENTION_BLOCKS 1
#define OLMO_SHARED static
#define OLMO_UNROLL
#define OLMO_ROLLED
#define OLMO_FOUR_AT(p, bytes) olmo::gpu::require_aligned(p, bytes)

namespace olmo::gpu {

/// Who has the first turn. Of two threads that lack a synchronisation the one or the other is ahead
/// in kForward and kBackward, and of two blocks that need each other; in kShuffled each block has
/// its threads in another order, so that of three or more any may be ahead of the others.
enum class Order { kForward, kBackward, kShuffled };

/// Runs `thread` for every thread of every block.
void run_blocks(std::int64_t blocks, int threads, Order order, const std::function<void()>& thread);

int thread_index();
std::int64_t block_index();
void sync_block();
void sync_group();
float from_lane(float x, int lane);

/// A GPU faults at an address that is no multiple of what it loads or stores at once.
void require_aligned(const void* address, std::size_t bytes);

inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline float divide(float a, float b) { return a / b; }

/// Off by one unit in the last place in two cases of three, as a GPU's may be.
inline float rough_sqrt(float x) {
  const auto bits = __builtin_bit_cast(std::int32_t, __builtin_sqrtf(x));
  const auto wrong = static_cast<std::int32_t>(__builtin_bit_cast(std::uint32_t, x) % 3U) - 1;
  return __builtin_bit_cast(float, bits > 0 && bits < 0x7F800000 ? bits + wrong : bits);
}

}  // namespace olmo::gpu
