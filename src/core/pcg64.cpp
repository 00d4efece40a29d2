#include "core/pcg64.h"

#include <bit>
#include <limits>
#include <utility>
#include <vector>

#include "core/error.h"

namespace olmo {
namespace {

/// The running constant and the mixing step of seed_seq_fe128.
class HashConstant {
 public:
  HashConstant(std::uint32_t start, std::uint32_t multiplier)
      : value_(start), multiplier_(multiplier) {}

  std::uint32_t hash(std::uint32_t word) {
    word ^= value_;
    value_ *= multiplier_;
    word *= value_;
    return word ^ (word >> 16);
  }

 private:
  std::uint32_t value_;
  std::uint32_t multiplier_;
};

std::uint32_t mix(std::uint32_t x, std::uint32_t y) {
  const std::uint32_t result = 0xca01f9ddU * x - 0x4973f715U * y;
  return result ^ (result >> 16);
}

}  // namespace

SeedSequence::SeedSequence(std::uint64_t seed) {
  HashConstant constant(0x43b0d7e5U, 0x931e8875U);
  // The entropy of one integer is its 32-bit words, low first; missing words count as zero.
  const std::array<std::uint32_t, 4> entropy = {static_cast<std::uint32_t>(seed),
                                                static_cast<std::uint32_t>(seed >> 32), 0, 0};
  for (std::size_t i = 0; i < pool_.size(); ++i) pool_[i] = constant.hash(entropy[i]);
  for (std::size_t from = 0; from < pool_.size(); ++from) {
    for (std::size_t to = 0; to < pool_.size(); ++to) {
      if (from != to) pool_[to] = mix(pool_[to], constant.hash(pool_[from]));
    }
  }
}

void SeedSequence::generate(std::span<std::uint32_t> out) const {
  HashConstant constant(0x8b51f9ddU, 0x58f38dedU);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = constant.hash(pool_[i % pool_.size()]);
}

void SeedSequence::generate(std::span<std::uint64_t> out) const {
  std::vector<std::uint32_t> words(2 * out.size());
  generate(std::span<std::uint32_t>(words));
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = words[2 * i] | (static_cast<std::uint64_t>(words[2 * i + 1]) << 32);
}

Pcg64::Pcg64(std::uint64_t seed) {
  std::array<std::uint64_t, 4> words{};
  SeedSequence(seed).generate(std::span<std::uint64_t>(words));
  increment_ = (((static_cast<U128>(words[2]) << 64) | words[3]) << 1) | 1U;
  step();
  state_ += (static_cast<U128>(words[0]) << 64) | words[1];
  step();
}

void Pcg64::step() {
  constexpr U128 kMultiplier =
      (static_cast<U128>(2549297995355413924ULL) << 64) | 4865540595714422341ULL;
  state_ = state_ * kMultiplier + increment_;
}

std::uint64_t Pcg64::next_u64() {
  step();
  const auto folded = static_cast<std::uint64_t>(state_ >> 64) ^ static_cast<std::uint64_t>(state_);
  return std::rotr(folded, static_cast<int>(state_ >> 122));
}

std::uint32_t Pcg64::next_u32() {
  if (has_half_) {
    has_half_ = false;
    return half_;
  }
  const std::uint64_t value = next_u64();
  has_half_ = true;
  half_ = static_cast<std::uint32_t>(value >> 32);
  return static_cast<std::uint32_t>(value);
}

std::uint32_t Pcg64::interval(std::uint32_t max) {
  if (max == 0) return 0;
  const std::uint32_t mask = std::numeric_limits<std::uint32_t>::max() >> std::countl_zero(max);
  std::uint32_t value = next_u32() & mask;
  while (value > max) value = next_u32() & mask;
  return value;
}

void Pcg64::shuffle(std::span<std::uint32_t> values) {
  OLMO_CHECK(values.size() <= std::numeric_limits<std::uint32_t>::max());
  for (std::size_t i = values.size(); i-- > 1;)
    std::swap(values[i], values[interval(static_cast<std::uint32_t>(i))]);
}

}  // namespace olmo
