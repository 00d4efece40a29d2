#include <limits>

#include "ops/host_math.h"
#include "ops/row_reference.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::ops;
namespace ref = olmo::ops::reference;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Every 4093rd of all binary32 numbers (4093 is prime, so mantissas vary), with neighbourhoods of
/// the hard places.
at::Tensor sample() {
  std::vector<float> all;
  for (std::uint64_t bits = 0; bits < (1ULL << 32); bits += 4093) {
    all.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  for (const float centre : {0.0F, 1.0F, 0.70710677F, 1.4142135F, 88.72284F, -87.33655F,
                             -103.97208F, -104.0F, 89.0F, 0x1p-126F}) {
    const auto first = std::bit_cast<std::uint32_t>(centre);
    for (std::uint32_t i = 0; i < 2000; ++i) {
      all.push_back(std::bit_cast<float>(first + i));
      if (first > i) all.push_back(std::bit_cast<float>(first - i));
    }
  }
  for (int i = -20000; i <= 20000; ++i) all.push_back(static_cast<float>(i) * 0.0053F);
  return at::tensor(all);
}

/// The value that a distance is measured in: one unit in the last place of the binary32 numbers at
/// x, subnormals included.
double ulp(double x) {
  const int exponent = std::max(-126, std::ilogb(x));
  return std::ldexp(1.0, exponent - 23);
}

/// Largest error in ulp where the exact result is a number, after checking the infinities and NaN.
double worst_ulp(ref::Unary function, double (*exact)(double)) {
  const at::Tensor x = sample();
  const at::Tensor y = ref::apply(function, x);
  double worst = 0;
  std::int64_t wrong_kind = 0;
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const double expected = exact(x.const_data_ptr<float>()[i]);
    const float got = y.const_data_ptr<float>()[i];
    const auto rounded = static_cast<float>(expected);
    if (std::isnan(expected) || std::isinf(rounded)) {
      wrong_kind += std::isnan(expected) ? !std::isnan(got) : got != rounded;
    } else {
      worst = std::max(worst, expected == 0 ? std::abs(static_cast<double>(got)) / 0x1p-149
                                            : std::abs(got - expected) / ulp(expected));
    }
  }
  CHECK(wrong_kind == 0);
  return worst;
}

float one(ref::Unary function, float x) {
  return ref::apply(function, at::full({1}, x)).item<float>();
}

}  // namespace

TEST_CASE("exp is within 1 ulp over all magnitudes, subnormal results included", "[ops]") {
  const double worst = worst_ulp(ops::exp, [](double x) { return std::exp(x); });
  INFO("worst " << worst);
  CHECK(worst < 1.0);
}

TEST_CASE("log is within 1 ulp over all magnitudes, subnormal arguments included", "[ops]") {
  const double worst = worst_ulp(ops::log, [](double x) { return std::log(x); });
  INFO("worst " << worst);
  CHECK(worst < 1.0);
}

TEST_CASE("sigmoid is within 2 ulp over all magnitudes", "[ops]") {
  const double worst = worst_ulp(ops::sigmoid, [](double x) { return 1.0 / (1.0 + std::exp(-x)); });
  INFO("worst " << worst);
  CHECK(worst < 2.0);
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

TEST_CASE("elementary functions have the same bits on every instruction set", "[ops]") {
  const at::Tensor x = sample();
  for (const ref::Unary function :
       {ref::Unary{ops::exp}, ref::Unary{ops::log}, ref::Unary{ops::sigmoid}}) {
    const at::Tensor expected = ref::apply(function, x);
    ref::for_each_policy([&](const Policy& policy) {
      at::Tensor got = at::empty_like(x);
      function(policy, x, got);
      INFO(to_string(policy.isa) << ", threads " << policy.threads);
      CHECK(ref::same_bits(got, expected));
    });
  }
}

TEST_CASE("the host's sine and cosine agree with libm for every size of angle", "[ops]") {
  double worst = 0;
  for (int i = 0; i < 200000; ++i) {
    const float x = std::ldexp(1.0F + static_cast<float>(i % 4096) / 4096.0F, i / 4096 - 25) +
                    static_cast<float>(i % 7);
    const auto [sine, cosine] = portable_sin_cos(x);
    worst = std::max({worst, std::abs(sine - std::sin(static_cast<double>(x))),
                      std::abs(cosine - std::cos(static_cast<double>(x)))});
  }
  INFO("worst " << worst);
  CHECK(worst < 0x1p-50);
}

TEST_CASE("the host's exp and log agree with libm", "[ops]") {
  double worst_exp = 0;
  double worst_log = 0;
  for (int i = -70000; i <= 70000; ++i) {
    const double x = i * 0.01;
    worst_exp = std::max(worst_exp, std::abs(portable_exp(x) / std::exp(x) - 1.0));
    const double y = std::exp(x);
    if (std::abs(x) > 0.02)
      worst_log = std::max(worst_log, std::abs(portable_log(y) / std::log(y) - 1.0));
  }
  INFO("worst " << worst_exp << ", " << worst_log);
  CHECK(worst_exp < 0x1p-49);
  CHECK(worst_log < 0x1p-49);
}
