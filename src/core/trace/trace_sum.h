// The rule by which a trace sums an output up, for the host and for a GPU's run-time compiler,
// which has no standard library.
#pragma once

#include <cstdint>

namespace olmo {

/// An output is summed up in pieces of so many bytes, the last of which may be shorter, ...
inline constexpr std::int64_t kTracePiece = std::int64_t{1} << 20;
inline constexpr std::int64_t trace_pieces(std::int64_t bytes) {
  return (bytes + kTracePiece - 1) / kTracePiece;
}
/// ... each in so many sums: enough that no multiplication waits for another. Word i of 64 bits
/// goes into sum i % kTraceSums. A last block of kTraceSums words is filled up with zeros.
inline constexpr std::int64_t kTraceSums = 8;

/// `sum`, which is number i of its piece and begins as 0, after the next of its words. Each step is
/// a bijection of the sum and of the word, so that one changed word always changes the sum; the
/// multiplier spreads it over the bits above, the rotation brings those down again.
inline std::uint64_t trace_sum(std::uint64_t sum, std::uint64_t word, std::uint64_t i) {
  const std::uint64_t x = sum ^ word ^ i;
  return ((x << 29) | (x >> 35)) * 0x9E3779B97F4A7C15U;
}

}  // namespace olmo
