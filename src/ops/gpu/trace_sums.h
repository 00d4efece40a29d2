// What a trace keeps of an output (core/trace/trace_sum.h), made where the output lies: over the
// bus it would take a hundred times as long.
#pragma once

#include "core/trace/trace_sum.h"
#include "ops/simd.h"

namespace olmo::ops::OLMO_ISA {

/// Sum number i of a piece of `size` bytes.
OLMO_INLINE std::uint64_t sum_of_piece(const std::uint8_t* bytes, std::int64_t size, int i) {
  constexpr int kAhead = 32;  // words on their way before the first of them is added
  constexpr std::int64_t kBlock = 8 * kTraceSums;
  const std::uint8_t* of_lane = bytes + std::int64_t{8} * i;
  std::uint64_t sum = 0;
  std::int64_t at = 0;
  if (reinterpret_cast<std::uintptr_t>(bytes) % 8 == 0) {
    const auto* words = reinterpret_cast<const std::uint64_t*>(of_lane);
    for (; at + kAhead * kBlock <= size; at += kAhead * kBlock) {
      std::uint64_t ahead[kAhead];
      OLMO_UNROLL for (int k = 0; k < kAhead; ++k) ahead[k] = words[at / 8 + k * kTraceSums];
      OLMO_UNROLL for (int k = 0; k < kAhead; ++k) sum = trace_sum(sum, ahead[k], i);
    }
  }
  for (; at < size; at += kBlock) {
    std::uint64_t word = 0;
    for (int k = 0; k < 8; ++k) {
      if (at + 8 * i + k < size) word |= static_cast<std::uint64_t>(of_lane[at + k]) << (8 * k);
    }
    sum = trace_sum(sum, word, i);
  }
  return sum;
}

/// A group takes a piece, a lane one of its sums; the other half of the lanes has nothing to do.
OLMO_INLINE void trace_sums(const std::uint8_t* bytes, std::int64_t size, std::uint64_t* sums,
                            std::int64_t piece) {
  const int i = gpu::lane();
  const std::int64_t begin = piece * kTracePiece, rest = size - begin;
  if (rest <= 0 || i >= kTraceSums) return;
  sums[piece * kTraceSums + i] =
      sum_of_piece(bytes + begin, rest < kTracePiece ? rest : kTracePiece, i);
}

}  // namespace olmo::ops::OLMO_ISA
