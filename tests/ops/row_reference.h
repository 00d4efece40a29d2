// Scalar transcriptions of the definitions in src/ops, and policies to compare with them.
#pragma once

#include <bit>
#include <cmath>
#include <functional>
#include <vector>

#include <ATen/ATen.h>

#include "core/compute/libtorch.h"
#include "core/compute/tensor.h"
#include "ops/elementwise.h"

namespace olmo::ops::reference {

/// Calls fn(policy) for every instruction set of this machine with 1, 2 and 3 threads, which share
/// out even the smallest product.
inline void for_each_policy(const std::function<void(const Policy&)>& fn) {
  for (const Isa isa : {Isa::kPlain, Isa::kAvx2, Isa::kAvx512}) {
    if (static_cast<int>(isa) > static_cast<int>(best_isa())) continue;
    for (const int threads : {1, 2, 3}) {
      Policy policy = resolve_policy("portable", to_string(isa), threads);
      policy.operations_a_thread = 1;
      apply_policy(policy);
      fn(policy);
    }
  }
  apply_policy(resolve_policy("portable", "auto", 1));
}

/// LibTorch's operations on so many threads: with bf16 widened, and as this machine multiplies it.
inline std::vector<Policy> fast_policies(int threads) {
  Policy widens = resolve_policy("fast", "auto", threads);
  if (!widens.multiplies_bf16) return {widens};
  const Policy multiplies = widens;
  widens.multiplies_bf16 = false;
  return {widens, multiplies};
}

inline Policy plain_policy() { return resolve_policy("portable", "plain", 1); }

/// Reproducible values in [-scale, scale): a multiplicative generator with an output mix
/// (splitmix64).
inline at::Tensor values(at::IntArrayRef sizes, std::uint64_t seed, float scale = 1.0F) {
  at::Tensor t = at::empty(sizes, at::kFloat);
  auto* data = t.data_ptr<float>();
  std::uint64_t state = seed * 0x9E3779B97F4A7C15ULL + 1;
  for (std::int64_t i = 0; i < t.numel(); ++i) {
    state += 0x9E3779B97F4A7C15ULL;
    std::uint64_t z = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    const auto bits = static_cast<std::uint32_t>((z ^ (z >> 31)) >> 40);  // 24 bits
    data[i] = scale * (static_cast<float>(bits) * 0x1p-23F - 1.0F);
  }
  return t;
}

/// Integers in [0, bound).
inline at::Tensor integers(std::int64_t count, std::int64_t bound, std::uint64_t seed) {
  at::Tensor t = at::empty({count}, at::kLong);
  const at::Tensor draws = values({count}, seed);
  for (std::int64_t i = 0; i < count; ++i) {
    const double unit = (static_cast<double>(draws.const_data_ptr<float>()[i]) + 1.0) / 2.0;
    t.data_ptr<std::int64_t>()[i] =
        std::min(bound - 1, static_cast<std::int64_t>(unit * static_cast<double>(bound)));
  }
  return t;
}

/// AttentionShape::document_starts of documents of these lengths, which fill sequences of `length`
/// positions one after the other.
inline at::Tensor document_starts(const std::vector<std::int64_t>& lengths, std::int64_t length) {
  std::vector<at::Tensor> parts;
  std::int64_t begin = 0;
  for (const auto count : lengths) {
    parts.push_back(at::full({count}, begin % length, at::kInt));
    begin += count;
  }
  return at::cat(parts);
}

/// What a bf16 tensor holds of fp32 numbers.
inline at::Tensor narrowed(const at::Tensor& t) { return t.to(at::kBFloat16); }
inline at::Tensor widened(const at::Tensor& t) { return t.to(at::kFloat); }
inline at::Tensor rounded(const at::Tensor& t) { return widened(narrowed(t)); }

/// Equal shapes, types (fp32 or bf16) and bits; a NaN equals any NaN.
inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  const at::Tensor x = widened(a).contiguous(), y = widened(b).contiguous();
  const auto* p = x.const_data_ptr<float>();
  const auto* q = y.const_data_ptr<float>();
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    if (std::isnan(p[i]) && std::isnan(q[i])) continue;
    if (std::bit_cast<std::uint32_t>(p[i]) != std::bit_cast<std::uint32_t>(q[i])) return false;
  }
  return true;
}

/// Largest distance from a double reference, as a fraction of the reference's largest magnitude.
inline double distance(const at::Tensor& got, const at::Tensor& expected) {
  const double largest = expected.abs().max().item<double>();
  return (got.to(at::kDouble) - expected).abs().max().item<double>() / std::max(largest, 1e-300);
}

/// Row sum: lane l folds fold(lane, i) over i = l, l+16, …; then the lanes in the tree of halves.
inline float row_fold(std::int64_t n, const std::function<float(float, std::int64_t)>& fold) {
  float lanes[16] = {};
  for (std::int64_t i = 0; i < n; ++i) lanes[i % 16] = fold(lanes[i % 16], i);
  for (int half = 8; half > 0; half /= 2) {
    for (int l = 0; l < half; ++l) lanes[l] = lanes[l] + lanes[l + half];
  }
  return lanes[0];
}

inline float row_sum(const float* x, std::int64_t n) {
  return row_fold(n, [&](float sum, std::int64_t i) { return sum + x[i]; });
}

using Unary = void (*)(const Context&, const at::Tensor&, const at::Tensor&);

/// One of exp, log, sigmoid (their own tests are in math_test.cpp) on the plain instruction set.
inline at::Tensor apply(Unary function, const at::Tensor& x) {
  at::Tensor out = at::empty(x.sizes(), at::kFloat);
  function(plain_policy(), x.contiguous(), out);
  return out;
}

}  // namespace olmo::ops::reference
