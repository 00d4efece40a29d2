// Operations on the emulated GPUs (fake/), or a real one, compared with the CPU, bit for bit.
#pragma once

#include <random>

#include <ATen/ATen.h>

#include "core/gpu.h"
#include "ops/elementwise.h"
#include "ops/row_reference.h"
#include "support/catch.h"

namespace olmo::ops::emulated {

using Tensors = std::vector<at::Tensor>;

/// A policy on the emulated GPU of `device`.
inline Policy policy_of(Device device) {
  Policy policy = resolve_policy("portable", "auto", 1);
  policy.device = device;
  policy.gpu = Gpu::open(device, device == Device::kCuda ? OLMO_FAKE_CUDA : OLMO_FAKE_ROCM);
  return policy;
}

/// Both of them; or the real one that OLMO_TEST_DEVICE names (scripts/prove_gpu.sh).
inline std::vector<Policy> policies() {
  const char* real = std::getenv("OLMO_TEST_DEVICE");
  if (real != nullptr) return {resolve_policy("portable", "auto", 1, real)};
  return {policy_of(Device::kCuda), policy_of(Device::kRocm)};
}

/// Applies a policy while it lives, then the CPU's.
class Applied {
 public:
  explicit Applied(const Policy& policy) { apply_policy(policy); }
  ~Applied() { apply_policy(resolve_policy("portable", "auto", 1)); }
  Applied(const Applied&) = delete;
  Applied& operator=(const Applied&) = delete;
};

/// As reference::values; every few elements a value that is not ordinary.
inline at::Tensor nasty(at::IntArrayRef sizes, std::uint64_t seed, float scale = 1.0F) {
  constexpr float kOdd[] = {0.0F, -0.0F,   1e-40F, -1e-45F, INFINITY, -INFINITY,
                            NAN,  3.4e38F, -90.0F, 88.5F,   1e-38F,   -1.0F};
  const at::Tensor t = reference::values(sizes, seed, scale);
  auto* data = t.data_ptr<float>();
  std::mt19937_64 bits(seed);
  for (std::int64_t i = 0; i < t.numel(); ++i) {
    if (bits() % 23 == 0) data[i] = kOdd[bits() % std::size(kOdd)];
  }
  return t;
}

/// `op` makes its inputs itself, so that they lie in the memory of the policy that it is given, and
/// returns every output. It runs twice on each GPU: the order of the threads alternates.
inline void check(const std::string& what, const std::function<Tensors(const Policy&)>& op) {
  const Policy cpu = resolve_policy("portable", "auto", 1);
  const Tensors expected = op(cpu);
  for (const Policy& policy : policies()) {
    const Applied applied(policy);
    for (int turn = 0; turn < 2; ++turn) {
      const Tensors found = op(policy);
      REQUIRE(found.size() == expected.size());
      for (std::size_t i = 0; i < found.size(); ++i) {
        INFO(what << ", " << to_string(policy.device) << ", output " << i << ", turn " << turn);
        CHECK(reference::same_bits(found[i].to(at::kFloat), expected[i].to(at::kFloat)));
      }
      scale(policy, at::ones({1}), 1.0F);  // turns the order of an even number of launches
    }
  }
}

}  // namespace olmo::ops::emulated
