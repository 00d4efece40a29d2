#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include <c10/util/BFloat16.h>

#include "ops/dispatch.h"
#include "ops/kernels/simd_steps.h"
#include "support/catch.h"

namespace olmo::ops {

OLMO_ISA_TABLE(SimdSteps, simd_steps)

}  // namespace olmo::ops

using namespace olmo;
using namespace olmo::ops;

namespace {

using Lanes = std::array<float, 16>;

template <class Check>
void for_each_isa(const Check& check) {
  for (const Isa isa : {Isa::kPlain, Isa::kAvx2, Isa::kAvx512}) {
    if (static_cast<int>(isa) > static_cast<int>(best_isa())) continue;
    INFO(to_string(isa));
    check(simd_steps_for(isa));
  }
}

// Mostly random bit patterns, so that subnormals, infinities and NaN occur.
Lanes draw(std::mt19937& bits, bool moderate) {
  static constexpr float kEdges[] = {0.0F,     -0.0F,    1.0F,      -1.0F, 1e-45F, 3.4e38F,
                                     -3.4e38F, INFINITY, -INFINITY, NAN,   0.5F,   2.5F};
  Lanes lanes{};
  for (auto& x : lanes) {
    x = bits() % 3 == 0 ? kEdges[bits() % std::size(kEdges)]
                        : std::bit_cast<float>(static_cast<std::uint32_t>(bits()));
    if (moderate)
      x = static_cast<float>(static_cast<std::int32_t>(bits() % 2000001) - 1000000) * 0.125F;
  }
  return lanes;
}

using Scalar = float (*)(float, float, float);

void check_lanes(SimdStep SimdSteps::*step, Scalar expected) {
  for_each_isa([&](const SimdSteps& steps) {
    std::mt19937 bits(7);
    int wrong = 0;
    for (int trial = 0; trial < 500; ++trial) {
      const Lanes a = draw(bits, false), b = draw(bits, false), c = draw(bits, false);
      Lanes out{};
      (steps.*step)(a.data(), b.data(), c.data(), out.data());
      for (std::size_t l = 0; l < 16; ++l) {
        const float e = expected(a[l], b[l], c[l]);
        const bool both_nan = std::isnan(e) && std::isnan(out[l]);
        wrong +=
            !both_nan && std::bit_cast<std::uint32_t>(e) != std::bit_cast<std::uint32_t>(out[l]);
      }
    }
    CHECK(wrong == 0);
  });
}

float fold(Lanes x, float (*combine)(float, float)) {
  for (std::size_t half = 8; half > 0; half /= 2) {
    for (std::size_t l = 0; l < half; ++l) x[l] = combine(x[l], x[l + half]);
  }
  return x[0];
}

}  // namespace

TEST_CASE("vector arithmetic is the scalar operation in every lane", "[ops]") {
  check_lanes(&SimdSteps::add, [](float a, float b, float) { return a + b; });
  check_lanes(&SimdSteps::subtract, [](float a, float b, float) { return a - b; });
  check_lanes(&SimdSteps::multiply, [](float a, float b, float) { return a * b; });
  check_lanes(&SimdSteps::divide, [](float a, float b, float) { return a / b; });
  check_lanes(&SimdSteps::fma, [](float a, float b, float c) { return std::fmaf(a, b, c); });
  check_lanes(&SimdSteps::sqrt, [](float a, float, float) { return std::sqrt(a); });
  check_lanes(&SimdSteps::negate_abs, [](float a, float, float) { return -std::abs(a); });
}

TEST_CASE("vector maximum and minimum give their second operand where either is NaN", "[ops]") {
  check_lanes(&SimdSteps::max, [](float a, float b, float) { return a > b ? a : b; });
  check_lanes(&SimdSteps::min, [](float a, float b, float) { return a < b ? a : b; });
}

TEST_CASE("vector comparisons are the scalar ones", "[ops]") {
  check_lanes(&SimdSteps::less, [](float a, float b, float) { return a < b ? 1.0F : 0.0F; });
  check_lanes(&SimdSteps::less_equal, [](float a, float b, float) { return a <= b ? 1.0F : 0.0F; });
  check_lanes(&SimdSteps::equal, [](float a, float b, float) { return a == b ? 1.0F : 0.0F; });
  check_lanes(&SimdSteps::not_equal, [](float a, float b, float) { return a != b ? 1.0F : 0.0F; });
}

TEST_CASE("integer lanes give the exponent of a float", "[ops]") {
  check_lanes(&SimdSteps::exponent, [](float a, float, float) {
    return static_cast<float>(static_cast<int>(std::bit_cast<std::uint32_t>(a) >> 23 & 255U) - 127);
  });
}

TEST_CASE("lanes are reduced in the fixed tree", "[ops]") {
  for_each_isa([](const SimdSteps& steps) {
    std::mt19937 bits(11);
    for (int trial = 0; trial < 100; ++trial) {
      const Lanes a = draw(bits, true);
      Lanes sum{}, top{};
      steps.tree_sum(a.data(), a.data(), a.data(), sum.data());
      steps.tree_max(a.data(), a.data(), a.data(), top.data());
      CHECK(sum[0] == fold(a, [](float x, float y) { return x + y; }));
      CHECK(top[0] == *std::max_element(a.begin(), a.end()));
    }
  });
}

TEST_CASE("partial loads and stores leave the other lanes alone", "[ops]") {
  for_each_isa([](const SimdSteps& steps) {
    Lanes a{};
    for (std::size_t l = 0; l < 16; ++l) a[l] = static_cast<float>(l + 1);
    for (std::int64_t n = 0; n <= 16; ++n) {
      Lanes out{};
      out.fill(-1.0F);
      steps.copy_n(a.data(), n, out.data());
      for (std::size_t l = 0; l < 16; ++l)
        CHECK(out[l] == (static_cast<std::int64_t>(l) < n ? a[l] : -1.0F));
    }
  });
}

TEST_CASE("stores into bf16 round to the nearest number, ties to even, and loads are exact",
          "[ops]") {
  // What lies between two neighbours of bf16, at every exponent and sign, and what is odd about
  // the ends: halves, one bit more or less, subnormals, overflow, infinities, NaN.
  std::vector<float> values;
  for (std::uint32_t upper = 0; upper <= 0xFFFF; upper += 7) {
    for (const std::uint32_t lower : {0U, 1U, 0x7FFFU, 0x8000U, 0x8001U, 0xFFFFU})
      values.push_back(std::bit_cast<float>(upper << 16 | lower));
  }
  values.resize((values.size() + 15) / 16 * 16);
  for_each_isa([&](const SimdSteps& steps) {
    int wrong = 0;
    for (std::size_t i = 0; i < values.size(); i += 16) {
      const std::int64_t n = i / 16 % 2 == 0 ? 16 : static_cast<std::int64_t>(i / 16 % 16);
      std::array<Bf16, 16> between{};
      Lanes out{};
      steps.through_bf16(values.data() + i, n, between.data(), out.data());
      for (std::size_t l = 0; l < 16; ++l) {
        const float x = values[i + l];
        const bool there = static_cast<std::int64_t>(l) < n;
        // LibTorch's rounding is the reference.
        const std::uint16_t expected = there ? c10::BFloat16(x).x : 0;
        const auto raised = std::bit_cast<float>(std::uint32_t{expected} << 16);
        if (there && std::isnan(x)) {
          wrong += !std::isnan(out[l]);
        } else {
          wrong += between[l].bits != expected || out[l] != raised;
        }
        const auto one = std::bit_cast<float>(std::uint32_t{steps.narrow(x).bits} << 16);
        wrong += std::isnan(x) ? !std::isnan(one) : one != static_cast<float>(c10::BFloat16(x));
      }
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE("a transposed block may be written with overlapping lines", "[ops]") {
  for_each_isa([](const SimdSteps& steps) {
    const std::int64_t side = steps.transpose_size, stride = side - 1, rows = stride;
    std::vector<float> src(static_cast<std::size_t>(rows * 50)),
        dst(static_cast<std::size_t>(side * side + 16));
    for (std::size_t i = 0; i < src.size(); ++i) src[i] = static_cast<float>(i);
    steps.transpose(src.data(), 50, rows, dst.data(), stride);
    for (std::int64_t p = 0; p < side; ++p) {
      for (std::int64_t r = 0; r < rows; ++r) {
        CHECK(dst[static_cast<std::size_t>(p * stride + r)] ==
              src[static_cast<std::size_t>(r * 50 + p)]);
      }
    }
  });
}
