// Operations on the emulated GPUs (fake/), or a real one, compared with the CPU, bit for bit.
#pragma once

#include <cstdlib>
#include <random>

#include <ATen/ATen.h>

#include "core/compute/gpu.h"
#include "core/compute/libtorch.h"
#include "core/compute/named_tensors.h"
#include "ops/elementwise.h"
#include "ops/row_reference.h"
#include "support/catch.h"
#include "support/environment.h"

namespace olmo::ops::emulated {

using Tensors = std::vector<at::Tensor>;

/// A policy on the emulated GPU of `device`.
inline Policy policy_of(Device device) {
  INFO(
      "LibTorch asks for a GPU once in a process, autograd in its first backward pass: where other "
      "tests ran before, it finds none. `olmo_tests [gpu]` runs these by themselves");
  Policy policy = resolve_policy("portable", "auto", 1);
  policy.device = device;
  policy.gpu = Gpu::open(device, device == Device::kCuda ? OLMO_FAKE_CUDA : OLMO_FAKE_ROCM);
  return policy;
}

/// How the emulated device works while an object lives (fake/device.h).
struct Mode {
  explicit Mode(const char* name) : variable("FAKE_GPU_MODE", name) {}
  test::Environment variable;
};

/// A device, and how it works.
struct Way {
  Policy policy;
  const char* mode;
};

/// Both of them, in every mode; or the real one that OLMO_TEST_DEVICE names (scripts/prove_gpu.sh).
inline std::vector<Way> ways() {
  const char* real = std::getenv("OLMO_TEST_DEVICE");
  if (real != nullptr) {
    // One for all tests, since its kernels take seconds to compile; never closed.
    static const auto* const kPolicy = new Policy(resolve_policy("portable", "auto", 1, real));
    return {{*kPolicy, "now"}};
  }
  return {{policy_of(Device::kCuda), "now"},
          {policy_of(Device::kCuda), "reversed"},
          {policy_of(Device::kCuda), "shuffled"},
          {policy_of(Device::kRocm), "delayed"}};
}

/// Tensors in the memory of the policy, drawn as those of row_reference.h.
inline at::Tensor values(const Policy& policy, at::IntArrayRef sizes, std::uint64_t seed,
                         float scale = 1.0F) {
  return to_device(policy, reference::values(sizes, seed, scale));
}
inline at::Tensor empty(const Policy& policy, at::IntArrayRef sizes,
                        at::ScalarType type = at::kFloat) {
  return new_tensor(sizes, tensors_of(policy, type));
}
inline at::Tensor full(const Policy& policy, at::IntArrayRef sizes, float value) {
  return to_device(policy, at::full(sizes, value));
}

/// As values; every few elements one that is not ordinary.
inline at::Tensor nasty(const Policy& policy, at::IntArrayRef sizes, std::uint64_t seed,
                        float scale = 1.0F) {
  constexpr float kOdd[] = {0.0F, -0.0F,   1e-40F, -1e-45F, INFINITY, -INFINITY,
                            NAN,  3.4e38F, -90.0F, 88.5F,   1e-38F,   -1.0F};
  const at::Tensor t = reference::values(sizes, seed, scale);
  auto* data = t.data_ptr<float>();
  std::mt19937_64 bits(seed);
  for (std::int64_t i = 0; i < t.numel(); ++i) {
    if (bits() % 23 == 0) data[i] = kOdd[bits() % std::size(kOdd)];
  }
  return to_device(policy, t);
}

/// `op` makes its inputs itself, in the memory of the policy that it is given, and returns every
/// output.
inline void check(const std::string& what, const std::function<Tensors(const Policy&)>& op) {
  const Policy cpu = resolve_policy("portable", "auto", 1);
  const Tensors expected = op(cpu);
  for (const auto& [policy, mode] : ways()) {
    const Mode chosen(mode);
    const Tensors found = op(policy);
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      INFO(what << ", " << to_string(policy.device) << ", " << mode << ", output " << i);
      const at::Tensor back = to_host(policy, found[i]);
      CHECK(reference::same_bits(back.to(at::kFloat), expected[i].to(at::kFloat)));
    }
  }
}

}  // namespace olmo::ops::emulated
