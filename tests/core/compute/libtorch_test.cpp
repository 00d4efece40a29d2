#include "core/compute/libtorch.h"

#include <cstdlib>
#include <cstring>
#include <set>

#include <ATen/Context.h>
#include <omp.h>

#include "core/error.h"
#include "support/catch.h"

using namespace olmo;

TEST_CASE("applying a policy sets every determinism switch", "[core]") {
  auto& context = at::globalContext();
  context.setDeterministicAlgorithms(false, false);
  context.setFlushDenormal(true);
  context.setDeterministicCuDNN(false);
  context.setDeterministicMkldnn(false);
  context.setBenchmarkCuDNN(true);
  context.setFloat32MatmulPrecision("medium");
  context.setAllowTF32CuDNN(true);
  omp_set_dynamic(1);
  ::setenv("NVIDIA_TF32_OVERRIDE", "1", 1);
  apply_policy(resolve_policy("fast", "auto", 1));
  CHECK(context.deterministicAlgorithms());
  CHECK_FALSE(context.deterministicAlgorithmsWarnOnly());
  CHECK(context.deterministicCuDNN());
  CHECK(context.deterministicMkldnn());
  CHECK_FALSE(context.benchmarkCuDNN());
  CHECK(context.float32MatmulPrecision() == at::Float32MatmulPrecision::HIGHEST);
  CHECK_FALSE(context.allowTF32CuBLAS());
  CHECK_FALSE(context.allowTF32CuDNN());
  CHECK_FALSE(context.allowFP16ReductionCPU());
  CHECK(omp_get_dynamic() == 0);
  CHECK(std::getenv("CUBLAS_WORKSPACE_CONFIG") != nullptr);
  CHECK(std::getenv("NVIDIA_TF32_OVERRIDE") == std::string("0"));
  const volatile float smallest = 0x1p-149F;  // subnormals are kept
  CHECK(smallest + 0.0F > 0.0F);
}

TEST_CASE("each determinism switch has a name of its own and a reason", "[core]") {
  std::set<std::string> names;
  for (const auto& each : determinism_switches()) {
    CHECK(names.insert(each.name).second);
    CHECK(std::strlen(each.value) > 0);
    CHECK(std::strlen(each.reason) > 20);
  }
  CHECK(names.size() >= 14);
}

TEST_CASE("the library of fast matrix products has a name", "[core]") {
  const std::string name = matrix_library(resolve_policy("fast", "auto", 1));
  CHECK(name != "unknown");
  CHECK_FALSE(name.empty());
}

TEST_CASE("the library that multiplies bf16 as it is has a name where it does", "[core]") {
  Policy policy = resolve_policy("fast", "auto", 1);
  CHECK_FALSE(resolve_policy("portable", "auto", 1).multiplies_bf16);
  const std::string fp32 = matrix_library(policy);
  policy.mixed_precision = MixedPrecision::kAutocast;
  policy.multiplies_bf16 = true;
  CHECK(matrix_library(policy) != fp32);
  policy.multiplies_bf16 = false;
  CHECK(matrix_library(policy) == fp32);
}

TEST_CASE("a policy of unknown words is refused", "[core]") {
  CHECK_THROWS_AS(resolve_policy("quick", "auto", 1), Error);
  CHECK_THROWS_AS(resolve_policy("portable", "sse", 1), Error);
  CHECK_THROWS_AS(resolve_policy("portable", "auto", -1), Error);
  CHECK(resolve_policy("portable", "plain", 3).threads == 3);
  CHECK(resolve_policy("portable", "auto", 0).threads >= 1);
}
