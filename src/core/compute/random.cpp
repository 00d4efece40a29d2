#include "core/compute/random.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/hash.h"

namespace olmo {
namespace {

// Everything below is plain C++ that the compiler vectorises, once for each instruction set. There
// is no fused operation and no reduction in it, so the bits cannot differ between the copies.
#define OLMO_INLINE inline __attribute__((always_inline))

constexpr std::uint32_t kMultiplier0 = 0xD2511F53U, kMultiplier1 = 0xCD9E8D57U;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9U, kWeyl1 = 0xBB67AE85U;
constexpr int kRounds = 10;

struct Words {
  std::uint32_t w0, w1, w2, w3;
};

OLMO_INLINE Words philox(Words c, std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = static_cast<std::uint64_t>(kMultiplier0) * c.w0;
    const std::uint64_t product1 = static_cast<std::uint64_t>(kMultiplier1) * c.w2;
    c = {static_cast<std::uint32_t>(product1 >> 32) ^ c.w1 ^ key0,
         static_cast<std::uint32_t>(product1),
         static_cast<std::uint32_t>(product0 >> 32) ^ c.w3 ^ key1,
         static_cast<std::uint32_t>(product0)};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return c;
}

/// Natural logarithm of a normal positive double, absolute error below 1e-10: 2·atanh((m - 1)/(m +
/// 1)) of the mantissa.
OLMO_INLINE double log_positive(double x) {
  constexpr std::uint64_t kMantissa = 0x000FFFFFFFFFFFFFULL;
  constexpr std::uint64_t kSqrtHalf = 0x3FE6A09E667F3BCDULL;
  // Taking the exponent relative to sqrt(1/2) puts the mantissa into [sqrt(1/2), sqrt(2)).
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t shifted = bits - kSqrtHalf + (0x3FFULL << 52);
  const double exponent = std::bit_cast<double>((shifted >> 52) | 0x4330000000000000ULL) -
                          (4503599627370496.0 + 1023.0);
  const double mantissa = std::bit_cast<double>((shifted & kMantissa) + kSqrtHalf);
  const double s = (mantissa - 1.0) / (mantissa + 1.0);
  const double t = s * s;
  const double series =
      ((((t * (1.0 / 11) + 1.0 / 9) * t + 1.0 / 7) * t + 1.0 / 5) * t + 1.0 / 3) * t + 1.0;
  return exponent * 0.69314718055994530942 + 2.0 * s * series;
}

/// z >= 0 with Φ(z) = 0.5 + q, for q in (0, 0.5 - 2^-34]: Wichura's PPND7 (Applied Statistics
/// algorithm AS 241), whose third region (tails below e^-25) 32 random bits do not reach. One
/// division serves both regions.
OLMO_INLINE double half_normal_quantile(double q) {
  constexpr double kSplit = 0.425;
  const double r = 0.180625 - q * q;
  const double central_top =
      (((59.109374720 * r + 159.29113202) * r + 50.434271938) * r + 3.3871327179) * q;
  const double central_bottom = ((67.187563600 * r + 78.757757664) * r + 17.895169469) * r + 1.0;
  const double s = __builtin_sqrt(-log_positive(0.5 - q)) - 1.6;
  const double tail_top =
      ((0.17023821103 * s + 1.3067284816) * s + 2.7568153900) * s + 1.4234372777;
  const double tail_bottom = (0.12021132975 * s + 0.73700164250) * s + 1.0;
  return (q <= kSplit ? central_top : tail_top) / (q <= kSplit ? central_bottom : tail_bottom);
}

struct NormalJob {
  std::uint32_t key[2];
  std::uint32_t nonce[2];
  double half_mass;  ///< Φ(cutoff) - 0.5
  double cutoff;
  double std;
};

constexpr std::uint64_t kBlockCounters = 64;
constexpr std::uint64_t kBlockWords = 4 * kBlockCounters;

/// One block of the stream, whole: words of counters [first_counter, first_counter + 64).
OLMO_INLINE void normal_block(const NormalJob& job, std::uint64_t first_counter, float* out) {
  alignas(64) std::uint32_t words[kBlockWords];
  for (std::uint64_t i = 0; i < kBlockCounters; ++i) {
    const std::uint64_t counter = first_counter + i;
    const Words w = philox({static_cast<std::uint32_t>(counter),
                            static_cast<std::uint32_t>(counter >> 32), job.nonce[0], job.nonce[1]},
                           job.key[0], job.key[1]);
    words[4 * i] = w.w0;
    words[4 * i + 1] = w.w1;
    words[4 * i + 2] = w.w2;
    words[4 * i + 3] = w.w3;
  }
  const double step = job.half_mass * 0x1p-31;
  for (std::uint64_t i = 0; i < kBlockWords; ++i) {
    // The top bit is the sign, the others the distance of the probability from one half.
    const auto magnitude = static_cast<std::int32_t>(words[i] & 0x7FFFFFFFU);
    const double q = (static_cast<double>(magnitude) + 0.5) * step;
    const double z = half_normal_quantile(q);
    const double bounded = (z < job.cutoff ? z : job.cutoff) * job.std;
    out[i] = static_cast<float>(static_cast<std::int32_t>(words[i]) < 0 ? -bounded : bounded);
  }
}

OLMO_INLINE void normal_blocks(const NormalJob& job, std::uint64_t first_counter,
                               std::uint64_t blocks, float* out) {
  for (std::uint64_t b = 0; b < blocks; ++b)
    normal_block(job, first_counter + b * kBlockCounters, out + b * kBlockWords);
}

void normal_blocks_plain(const NormalJob& job, std::uint64_t first, std::uint64_t blocks,
                         float* out) {
  normal_blocks(job, first, blocks, out);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) void normal_blocks_avx2(const NormalJob& job, std::uint64_t first,
                                                        std::uint64_t blocks, float* out) {
  normal_blocks(job, first, blocks, out);
}
#if defined(__clang__)  // it knows no preferred width, and would ignore the whole attribute
#define OLMO_AVX512 "avx512f,avx512dq,avx512bw,avx512vl"
#else
#define OLMO_AVX512 "avx512f,avx512dq,avx512bw,avx512vl,prefer-vector-width=512"
#endif
__attribute__((target(OLMO_AVX512))) void normal_blocks_avx512(const NormalJob& job,
                                                               std::uint64_t first,
                                                               std::uint64_t blocks, float* out) {
  normal_blocks(job, first, blocks, out);
}
#endif

void run_blocks(Isa isa, const NormalJob& job, std::uint64_t first, std::uint64_t blocks,
                float* out) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx512) return normal_blocks_avx512(job, first, blocks, out);
  if (isa == Isa::kAvx2) return normal_blocks_avx2(job, first, blocks, out);
#endif
  (void)isa;
  normal_blocks_plain(job, first, blocks, out);
}

/// e^-x for x in [0, 64] by squaring: relative error below 1e-12.
double exp_negative(double x) {
  constexpr int kSquarings = 10;
  const double y = x / (1 << kSquarings);
  double series = 1.0;
  for (int n = 12; n >= 1; --n) series = 1.0 - y / n * series;
  for (int i = 0; i < kSquarings; ++i) series *= series;
  return series;
}

/// Φ(c) - 0.5 = φ(c) · Σ c^(2n+1) / (1·3·5·…·(2n+1)), all terms positive.
double half_normal_mass(double c) {
  constexpr double kBeyond = 8.0;  // what lies beyond is less than a double can add to one half
  if (c >= kBeyond) return 0.5;
  double term = c;
  double sum = c;
  for (int n = 1; n < 400; ++n) {
    term *= c * c / (2 * n + 1);
    sum += term;
  }
  constexpr double kOneOverSqrtTwoPi = 0.39894228040143267794;
  return kOneOverSqrtTwoPi * exp_negative(0.5 * c * c) * sum;
}

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

std::array<std::uint32_t, 4> philox4x32_10(const std::array<std::uint32_t, 4>& counter,
                                           const std::array<std::uint32_t, 2>& key) {
  const Words w = philox({counter[0], counter[1], counter[2], counter[3]}, key[0], key[1]);
  return {w.w0, w.w1, w.w2, w.w3};
}

PhiloxStream::PhiloxStream(std::uint64_t seed, std::string_view name) {
  Sha256 hash;
  hash.update("olmo-harness philox stream v1\n").update_u64(seed).update(name);
  const Digest digest = hash.finish();
  std::uint32_t words[4];
  for (std::size_t i = 0; i < 4; ++i) {
    words[i] = 0;
    for (std::size_t j = 0; j < 4; ++j)
      words[i] |= static_cast<std::uint32_t>(digest.bytes[4 * i + j]) << (8 * j);
  }
  key_ = {words[0], words[1]};
  nonce_ = {words[2], words[3]};
}

std::uint32_t PhiloxStream::word(std::uint64_t index) const {
  const std::uint64_t counter = index / 4;
  return philox4x32_10({static_cast<std::uint32_t>(counter),
                        static_cast<std::uint32_t>(counter >> 32), nonce_[0], nonce_[1]},
                       key_)[index % 4];
}

void PhiloxStream::fill_normal(const Policy& policy, std::uint64_t first, double std,
                               std::optional<double> cutoff, std::span<float> out) const {
  if (!(std >= 0.0 && std < 1e30))
    throw Error(ErrorKind::kUsage,
                "normal numbers: the standard deviation must be finite and >= 0, got " +
                    std::to_string(std));
  if (cutoff && !(*cutoff > 0.0))
    throw Error(ErrorKind::kUsage,
                "normal numbers: the cutoff must be positive, got " + std::to_string(*cutoff));
  constexpr double kNoCutoff = 1e300;
  const double bound = cutoff.value_or(kNoCutoff);
  const NormalJob job{
      {key_[0], key_[1]}, {nonce_[0], nonce_[1]}, half_normal_mass(bound), bound, std};
  // Whole blocks go straight to `out`; the ends are cut out of a block of their own.
  alignas(64) float block[kBlockWords];
  std::uint64_t done = 0;
  while (done < out.size()) {
    const std::uint64_t index = first + done;
    const std::uint64_t skip = index % kBlockWords;
    const std::uint64_t whole = skip == 0 ? (out.size() - done) / kBlockWords : 0;
    if (whole > 0) {
      run_blocks(policy.isa, job, index / 4, whole, out.data() + done);
      done += whole * kBlockWords;
      continue;
    }
    run_blocks(policy.isa, job, (index - skip) / 4, 1, block);
    const std::uint64_t count = std::min<std::uint64_t>(kBlockWords - skip, out.size() - done);
    std::memcpy(out.data() + done, block + skip, count * sizeof(float));
    done += count;
  }
}

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

/// interval(last), interval(last - 1), … in order. Whether a word is refused cannot be foreseen, so
/// there is no branch on it: a refused one is overwritten by the next.
void Pcg64::draw_places(std::size_t last, std::span<std::uint32_t> places) {
  for (std::size_t k = 0; k < places.size();) {
    const auto max = static_cast<std::uint32_t>(last - k);
    const std::uint32_t place =
        next_u32() & (std::numeric_limits<std::uint32_t>::max() >> std::countl_zero(max));
    places[k] = place;
    k += place <= max ? 1U : 0U;
  }
}

void Pcg64::shuffle_down_to(std::span<std::uint32_t> values, std::size_t end) {
  OLMO_CHECK(values.size() <= std::numeric_limits<std::uint32_t>::max() && end >= 1);
  // A swap waits for memory that lies anywhere among gigabytes. Which places come is known before,
  // for no draw looks at a value; so those of the next swaps are fetched meanwhile: 4 times as fast
  // for 1.5e9 values.
  constexpr std::size_t kAhead = 32;
  std::array<std::uint32_t, kAhead> drawn{}, next{};
  const auto draw = [&](std::size_t size) {
    const auto places = std::span(next).first(std::min(kAhead, size - std::min(size, end)));
    if (!places.empty()) draw_places(size - 1, places);
    for (const std::uint32_t place : places) __builtin_prefetch(&values[place], 1);
    return places.size();
  };
  std::size_t size = values.size();
  for (std::size_t count = draw(size); count > 0;) {
    drawn = next;
    const std::size_t ahead = draw(size - count);
    for (std::size_t k = 0; k < count; ++k) std::swap(values[size - 1 - k], values[drawn[k]]);
    size -= count;
    count = ahead;
  }
}

void Pcg64::shuffle(std::span<std::uint32_t> values) { shuffle_down_to(values, 1); }

}  // namespace olmo
