#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace olmo {

/// NumPy's `SeedSequence(seed)` for a non-negative integer below 2^64 (O'Neill's seed_seq_fe128,
/// pool of four words): spreads a small seed over as much state as a generator wants.
class SeedSequence {
 public:
  explicit SeedSequence(std::uint64_t seed);

  /// `generate_state(out.size(), uint32)`.
  void generate(std::span<std::uint32_t> out) const;
  /// `generate_state(out.size(), uint64)`: pairs of 32-bit words, low half first.
  void generate(std::span<std::uint64_t> out) const;

 private:
  std::array<std::uint32_t, 4> pool_{};
};

/// NumPy's `PCG64(seed)`: the 128-bit congruential generator with XSL-RR output (O'Neill 2014), bit
/// for bit, and the two draws of `Generator` on which OLMo's data order rests. A value type: a copy
/// continues on its own.
class Pcg64 {
 public:
  explicit Pcg64(std::uint64_t seed);

  std::uint64_t next_u64();
  /// Half of a 64-bit output: the low half first; the high half is kept for the next call.
  std::uint32_t next_u32();
  /// Uniform in [0, max] by masked rejection, as NumPy's `random_interval`: 32-bit words, smallest
  /// mask of ones that covers `max`.
  std::uint32_t interval(std::uint32_t max);
  /// `Generator.shuffle` of a one-dimensional array: Fisher-Yates from the end.
  void shuffle(std::span<std::uint32_t> values);

 private:
  __extension__ using U128 = unsigned __int128;

  void step();

  U128 state_ = 0;
  U128 increment_ = 0;
  bool has_half_ = false;
  std::uint32_t half_ = 0;
};

}  // namespace olmo
