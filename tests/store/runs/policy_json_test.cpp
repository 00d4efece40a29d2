#include "store/runs/policy_json.h"

#include <nlohmann/json.hpp>

#include "core/compute/libtorch.h"
#include "support/catch.h"

namespace olmo::store {

TEST_CASE("the record of a policy names its numerics and every switch", "[store]") {
  Policy policy = resolve_policy("portable", "plain", 3);
  Json json = policy_json(policy);
  CHECK(json.at("numerics") == "portable");
  CHECK(json.at("isa") == "plain");
  CHECK(json.at("threads") == 3);
  CHECK(json.at("matrix_products") == "olmo-harness");
  CHECK(json.at("switches").size() == determinism_switches().size());
  policy.numerics = Numerics::kFast;
  CHECK(policy_json(policy).at("matrix_products") == matrix_library(policy));
}

TEST_CASE("the record of a policy tells which mixed precision it is, and nothing in fp32",
          "[store]") {
  Policy policy = resolve_policy("portable", "auto", 1);
  CHECK(policy_json(policy).at("precision") == "fp32");
  CHECK_FALSE(policy_json(policy).contains("mixed_precision"));
  policy.mixed_precision = MixedPrecision::kAutocast;
  CHECK(policy_json(policy).at("precision") == "amp_bf16");
  CHECK(policy_json(policy).at("mixed_precision") == "autocast");
}

}  // namespace olmo::store
