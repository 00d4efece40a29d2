// The kernels of products with caches so small that every way to block, pack, copy and fetch their
// operands is taken by small products (ops/linear_test.cpp has them with the machine's own caches).
#include "ops/kernels/gemm.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/compute/policy.h"
#include "ops/dispatch.h"
#include "support/catch.h"

namespace olmo::ops {
OLMO_ISA_TABLE(GemmKernels, gemm_kernels)
}  // namespace olmo::ops

namespace olmo::test {
namespace {

using ops::GemmProblem;

/// A product with its operands.
struct Product {
  GemmProblem problem;
  std::vector<float> a, b, c;
  std::int64_t l2_bytes;

  [[nodiscard]] std::string text() const {
    const auto& g = problem;
    return std::to_string(g.m) + " x " + std::to_string(g.n) + " x " + std::to_string(g.k) +
           ", rows of A " + std::to_string(g.a_row) + ", " + std::to_string(g.a_k) + ", cache of " +
           std::to_string(l2_bytes) + " bytes";
  }
};

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}

  std::int64_t from_to(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine_() % static_cast<unsigned>(high - low + 1));
  }
  std::vector<float> numbers(std::int64_t count) {
    std::vector<float> x(static_cast<std::size_t>(count));
    for (auto& each : x) each = static_cast<float>(from_to(-1000, 1000)) / 997.0F;
    return x;
  }

 private:
  std::mt19937 engine_;
};

/// One of the three products of a linear layer. Half of the extents are whole tiles of the widest
/// kernels, whose operands are copied while a tile is computed.
Product random_product(Random& random) {
  const bool whole = random.from_to(0, 1) == 1;
  const std::int64_t m = whole ? 14 * random.from_to(1, 14) : random.from_to(1, 200);
  const std::int64_t n = whole ? 32 * random.from_to(1, 6) : random.from_to(1, 200);
  const std::int64_t k = whole ? 32 * random.from_to(1, 14) : random.from_to(1, 450);
  const std::int64_t gap = random.from_to(0, 1) * random.from_to(1, 9);
  // Rows of A that are a multiple of 1,024 numbers apart are copied, others are read where they
  // lie.
  const std::int64_t a_row = random.from_to(0, 2) == 0 ? 1024 : k + gap;
  GemmProblem g{};
  g.m = m, g.n = n, g.k = k, g.c_row = n + gap;
  switch (random.from_to(0, 2)) {
    case 0:  // forward
      g.a_row = a_row, g.a_k = 1, g.b_k = 1, g.b_column = k + gap;
      break;
    case 1:  // gradient of the input
      g.a_row = a_row, g.a_k = 1, g.b_k = n + gap, g.b_column = 1;
      break;
    default:  // gradient of the weight
      g.a_row = 1, g.a_k = m + gap, g.b_k = n + gap, g.b_column = 1;
  }
  g.accumulate = random.from_to(0, 1) == 1;
  return {g, random.numbers((m + 1) * g.a_row + (k + 1) * g.a_k),
          random.numbers((k + 1) * g.b_k + (n + 1) * g.b_column), random.numbers(m * g.c_row),
          random.from_to(8, 64) << 10};
}

std::vector<float> reference(const Product& product) {
  const auto& g = product.problem;
  auto c = product.c;
  const auto at = [](const std::vector<float>& x, std::int64_t i) {
    return x[static_cast<std::size_t>(i)];
  };
  for (std::int64_t i = 0; i < g.m; ++i) {
    for (std::int64_t j = 0; j < g.n; ++j) {
      float& sum = c[static_cast<std::size_t>(i * g.c_row + j)];
      if (!g.accumulate) sum = 0;
      for (std::int64_t p = 0; p < g.k; ++p) {
        sum = std::fmaf(at(product.a, i * g.a_row + p * g.a_k),
                        at(product.b, p * g.b_k + j * g.b_column), sum);
      }
    }
  }
  return c;
}

struct Computed {
  std::vector<float> c;
  bool stays_in_workspace;
};

/// The workspace is full of NaNs, so that what is read before it is written shows.
Computed computed(const ops::GemmKernels& kernels, const Product& product) {
  constexpr float kGuard = 12345;
  GemmProblem g = product.problem;
  auto c = product.c;
  g.a = product.a.data();
  g.b = product.b.data();
  g.c = c.data();
  const auto blocking = kernels.blocking(g, product.l2_bytes);
  const auto floats = static_cast<std::size_t>(kernels.workspace(g, blocking));
  std::vector<float> memory(floats + 16 + 64, std::numeric_limits<float>::quiet_NaN());
  const std::size_t into_line =
      reinterpret_cast<std::uintptr_t>(memory.data()) % 64 / sizeof(float);
  float* workspace = memory.data() + (16 - into_line) % 16;
  for (int i = 0; i < 64; ++i) workspace[floats + static_cast<std::size_t>(i)] = kGuard;
  kernels.gemm(g, blocking, workspace);
  bool stays = true;
  for (int i = 0; i < 64; ++i) stays &= workspace[floats + static_cast<std::size_t>(i)] == kGuard;
  return {c, stays};
}

}  // namespace

TEST_CASE("a product is one chain of fma for each output, however it is blocked", "[ops]") {
  Random random(1);
  for (int round = 0; round < 100; ++round) {
    const Product product = random_product(random);
    const auto expected = reference(product);
    for (const Isa isa : {Isa::kPlain, Isa::kAvx2, Isa::kAvx512}) {
      if (isa > best_isa()) continue;
      const auto [c, stays] = computed(ops::gemm_kernels_for(isa), product);
      INFO(product.text() << " on " << to_string(isa));
      CHECK(stays);
      CHECK(std::memcmp(c.data(), expected.data(), c.size() * sizeof(float)) == 0);
    }
  }
}

}  // namespace olmo::test
