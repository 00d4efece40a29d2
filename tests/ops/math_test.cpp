#include <limits>

#include <ATen/ATen.h>

#include "core/compute/libtorch.h"
#include "ops/rope.h"
#include "ops/row_reference.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::ops;
namespace ref = olmo::ops::reference;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Adds the 2 * reach + 1 numbers whose bits lie around those of `centre`, and their negatives.
void add_around(std::vector<float>& all, float centre, int reach) {
  const auto bits = static_cast<std::int64_t>(std::bit_cast<std::uint32_t>(centre));
  for (std::int64_t i = std::max<std::int64_t>(0, bits - reach); i <= bits + reach; ++i) {
    const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(i));
    all.push_back(x);
    all.push_back(-x);
  }
}

/// Every 4093rd of all binary32 numbers (4093 is prime, so mantissas vary), both ends and the
/// middle of every exponent, of the subnormals too, and neighbourhoods of the hard places.
at::Tensor sample() {
  std::vector<float> all;
  for (std::uint64_t bits = 0; bits < (1ULL << 32); bits += 4093)
    all.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  for (int exponent = -149; exponent < 128; ++exponent) {
    add_around(all, std::ldexp(1.0F, exponent), 64);
    add_around(all, std::ldexp(1.41421356F, exponent), 64);  // log's reduction changes here
  }
  for (int n = -151; n <= 129; ++n)  // exp's reduction changes here
    add_around(all, static_cast<float>((n + 0.5) * 0.6931471805599453), 64);
  for (const float centre : {0.0F, 1.0F, 0.70710677F, 1.4142135F, 88.72284F, 87.33655F, 103.97208F,
                             104.0F, 89.0F, 0x1p-126F, std::numeric_limits<float>::max()})
    add_around(all, centre, 2000);
  for (int i = -20000; i <= 20000; ++i) all.push_back(static_cast<float>(i) * 0.0053F);
  return at::tensor(all);
}

/// The value that a distance is measured in: one unit in the last place of the binary32 numbers at
/// x, subnormals included.
double ulp(double x) {
  const auto exponent = static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(x) >> 52 & 0x7FF);
  const auto lowest = std::max<std::int64_t>(exponent - 1023, -126) - 23;
  return std::bit_cast<double>(static_cast<std::uint64_t>(lowest + 1023) << 52);
}

/// A function of binary32 numbers and the same in doubles, whose own error is below 2^-28 ulp.
struct Subject {
  const char* name;
  ref::Unary function;
  double (*exact)(double);
  double limit;  ///< ulp
};

constexpr Subject kSubjects[] = {
    {"exp", ops::exp, [](double x) { return std::exp(x); }, 1.0},
    {"log", ops::log, [](double x) { return std::log(x); }, 1.0},
    {"sigmoid", ops::sigmoid, [](double x) { return 1.0 / (1.0 + std::exp(-x)); }, 2.0},
};

struct Worst {
  double ulp = 0;
  float x = 0;                   ///< where
  std::int64_t not_nearest = 0;  ///< results that are not the nearest binary32 number
  std::int64_t wrong_kind = 0;   ///< of infinities and NaN
};

void measure(const Subject& subject, const float* x, const float* y, std::int64_t n, Worst& worst) {
  for (std::int64_t i = 0; i < n; ++i) {
    const double expected = subject.exact(x[i]);
    const auto rounded = static_cast<float>(expected);
    if (std::isnan(expected) || std::isinf(rounded)) {
      worst.wrong_kind += std::isnan(expected) ? !std::isnan(y[i]) : y[i] != rounded;
      continue;
    }
    worst.not_nearest += y[i] != rounded;
    const double error = std::abs(y[i] - expected) / ulp(expected);
    if (!(error <= worst.ulp)) worst = {error, x[i], worst.not_nearest, worst.wrong_kind};
  }
}

float one(ref::Unary function, float x) {
  return ref::apply(function, at::full({1}, x)).item<float>();
}

}  // namespace

TEST_CASE("exp, log and sigmoid keep their bounds on every instruction set, with the same bits",
          "[ops]") {
  const at::Tensor x = sample();
  for (const Subject& subject : kSubjects) {
    at::Tensor first;
    ref::for_each_policy([&](const Policy& policy) {
      at::Tensor y = at::empty_like(x);
      subject.function(policy, x, y);
      INFO(subject.name << ", " << to_string(policy.isa) << ", threads " << policy.threads);
      if (!first.defined()) {
        first = y;
        Worst worst;
        measure(subject, x.const_data_ptr<float>(), y.const_data_ptr<float>(), x.numel(), worst);
        INFO("worst " << worst.ulp << " ulp at " << worst.x);
        CHECK(worst.ulp < subject.limit);
        CHECK(worst.wrong_kind == 0);
      }
      CHECK(ref::same_bits(y, first));
    });
  }
}

// Hidden: minutes. `olmo_tests "[.exhaustive]"` prints the figures of bench/results/elementary.md.
TEST_CASE("exp, log and sigmoid keep their bounds on all 2^32 numbers", "[.exhaustive]") {
  constexpr std::uint64_t kChunk = 1U << 20;
  const Policy policy = resolve_policy("portable", "auto", 1);
  apply_policy(policy);
  const at::Tensor x = at::empty({kChunk}), y = at::empty({kChunk});
  for (const Subject& subject : kSubjects) {
    Worst worst;
    for (std::uint64_t begin = 0; begin < (1ULL << 32); begin += kChunk) {
      auto* bits = static_cast<std::uint32_t*>(x.mutable_data_ptr());
      for (std::uint64_t i = 0; i < kChunk; ++i) bits[i] = static_cast<std::uint32_t>(begin + i);
      subject.function(policy, x, y);
      measure(subject, x.const_data_ptr<float>(), y.const_data_ptr<float>(), kChunk, worst);
    }
    std::printf("| %s | %.4f | %a | %.3f %% |\n", subject.name, worst.ulp,
                static_cast<double>(worst.x),
                static_cast<double>(worst.not_nearest) / 0x1p32 * 100);
    CHECK(worst.ulp < subject.limit);
    CHECK(worst.wrong_kind == 0);
  }
}

TEST_CASE("elementary functions keep the special values", "[ops]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(one(ops::exp, 0.0F) == 1.0F);
  CHECK(one(ops::exp, -0.0F) == 1.0F);
  CHECK(one(ops::exp, kInfinity) == kInfinity);
  CHECK(one(ops::exp, -kInfinity) == 0.0F);
  CHECK(std::isnan(one(ops::exp, nan)));
  CHECK(one(ops::log, 1.0F) == 0.0F);
  CHECK(one(ops::log, 0.0F) == -kInfinity);
  CHECK(one(ops::log, -0.0F) == -kInfinity);
  CHECK(one(ops::log, kInfinity) == kInfinity);
  CHECK(std::isnan(one(ops::log, -1.0F)));
  CHECK(std::isnan(one(ops::log, nan)));
  CHECK(one(ops::sigmoid, 0.0F) == 0.5F);
  CHECK(one(ops::sigmoid, kInfinity) == 1.0F);
  CHECK(one(ops::sigmoid, -kInfinity) == 0.0F);
  CHECK(std::isnan(one(ops::sigmoid, nan)));
}

// The host's functions are measured against libm in long double: 64 bits of significand or more.

TEST_CASE("the host's sine and cosine are exact to 2^-50 for every size of angle", "[ops]") {
  double worst = 0, at = 0;
  const auto check = [&](float x) {
    const auto [sine, cosine] = portable_sin_cos(x);
    const auto error =
        static_cast<double>(std::max(std::abs(sine - std::sin(static_cast<long double>(x))),
                                     std::abs(cosine - std::cos(static_cast<long double>(x)))));
    if (!(error <= worst)) worst = error, at = x;
  };
  constexpr auto kEnd = static_cast<std::uint32_t>(0x4B800000);  // 2^24
  for (std::uint32_t bits = 0; bits < kEnd; bits += 2039) check(std::bit_cast<float>(bits));
  for (int exponent = -149; exponent < 24; ++exponent) {
    check(std::ldexp(1.0F, exponent));
    check(std::nextafter(std::ldexp(1.0F, exponent + 1), 0.0F));
  }
  // Around the multiples of pi/4, where the reduction changes and cancels most.
  for (int n = 1; n < 21361414; n += n < 100000 ? 1 : 97) {
    const auto x = static_cast<float>(n * 0.78539816339744830962);
    for (const float near : {std::nextafter(x, 0.0F), x, std::nextafter(x, kInfinity)})
      if (near < 0x1p24F) check(near);
  }
  for (int position = 0; position < 8192; ++position)  // angles of RoPE at width 64
    for (int i = 0; i < 32; i += 5)
      check(static_cast<float>(position) * static_cast<float>(std::pow(10000.0, -i / 32.0)));
  INFO("worst " << worst << " at " << at);
  CHECK(worst < 0x1p-50);
}

TEST_CASE("the host's exp is exact to 2^-49 of the result", "[ops]") {
  double worst = 0, at = 0;
  const auto check = [&](double x) {
    const long double exact = std::exp(static_cast<long double>(x));
    const auto error = static_cast<double>(std::abs((portable_exp(x) - exact) / exact));
    if (!(error <= worst)) worst = error, at = x;
  };
  for (int i = -700000; i <= 700000; ++i) check(i * 0.001);
  for (int n = -1009; n <= 1009; ++n) {  // where the reduction changes
    const double x = (n + 0.5) * 0.69314718055994530942;
    for (const double near : {std::nextafter(x, -1e9), x, std::nextafter(x, 1e9)}) check(near);
  }
  for (int exponent = -1074; exponent < 9; ++exponent) {
    check(std::ldexp(1.25, exponent));
    check(-std::ldexp(1.25, exponent));
  }
  INFO("worst " << worst << " at " << at);
  CHECK(worst < 0x1p-49);
}

TEST_CASE("the host's log is exact to 2^-49 of the result, near 1 too", "[ops]") {
  double worst = 0, at = 0;
  const auto check = [&](double x) {
    const long double exact = std::log(static_cast<long double>(x));
    const auto error = x == 1.0 ? std::abs(portable_log(x))
                                : static_cast<double>(std::abs((portable_log(x) - exact) / exact));
    if (!(error <= worst)) worst = error, at = x;
  };
  for (int exponent = -1022; exponent < 1024; ++exponent) {
    for (int i = 0; i < 512; ++i) check(std::ldexp(1.0 + i / 512.0, exponent));
    check(std::ldexp(1.4142135623730951, exponent));
    check(std::ldexp(std::nextafter(1.4142135623730951, 2.0), exponent));
    check(std::ldexp(std::nextafter(2.0, 1.0), exponent));
  }
  for (int exponent = -53; exponent < 0; ++exponent) {
    for (int i = 0; i < 256; ++i) {
      check(1.0 + std::ldexp(1.0 + i / 256.0, exponent));
      check(1.0 - std::ldexp(1.0 + i / 256.0, exponent - 1));
    }
  }
  INFO("worst " << worst << " at " << at);
  CHECK(worst < 0x1p-49);
}
