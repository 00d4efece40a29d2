#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/policy.h"

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

}  // namespace olmo
