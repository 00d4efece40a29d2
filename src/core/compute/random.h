// Random numbers: Philox for initial weights, NumPy's PCG64 for the order of the data.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/compute/policy.h"

namespace olmo {

/// One call of Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC
/// 2011): ten rounds over `counter` under `key`. Equal to Random123's philox4x32.
std::array<std::uint32_t, 4> philox4x32_10(const std::array<std::uint32_t, 4>& counter,
                                           const std::array<std::uint32_t, 2>& key);

/// A stream of random numbers of its own for every (seed, name): element i depends on nothing else,
/// so neither the order of drawing, nor threads, nor the cut of a tensor into shards can change it.
class PhiloxStream {
 public:
  PhiloxStream(std::uint64_t seed, std::string_view name);

  /// Word `index` of the stream: word index % 4 of the counter (index / 4, nonce).
  [[nodiscard]] std::uint32_t word(std::uint64_t index) const;

  /// out[i] = std · z(first + i), z standard normal through the inverse distribution function of
  /// word first + i. With `cutoff` c, z is truncated to [-c, c] as torch's trunc_normal_ does it.
  /// The bits depend on nothing but the arguments: the double arithmetic uses + - * / and square
  /// root only. Relative error of z against the exact inverse: 2e-7. Throws Error(kUsage) unless
  /// std is finite and >= 0, and the cutoff is positive.
  void fill_normal(const Policy& policy, std::uint64_t first, double std,
                   std::optional<double> cutoff, std::span<float> out) const;

 private:
  std::array<std::uint32_t, 2> key_{};
  std::array<std::uint32_t, 2> nonce_{};
};

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
  /// The part of it that settles values[size - 1] down to values[end]; a shuffle is made of such
  /// parts, one after the other, each with the first `end` values of the one before. `end` >= 1.
  void shuffle_down_to(std::span<std::uint32_t> values, std::size_t end);

 private:
  __extension__ using U128 = unsigned __int128;

  void step();
  void draw_places(std::size_t last, std::span<std::uint32_t> places);

  U128 state_ = 0;
  U128 increment_ = 0;
  bool has_half_ = false;
  std::uint32_t half_ = 0;
};

}  // namespace olmo
