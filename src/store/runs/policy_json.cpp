#include "store/runs/policy_json.h"

#include <nlohmann/json.hpp>

#include "core/compute/gpu.h"
#include "core/compute/libtorch.h"

namespace olmo::store {

Json policy_json(const Policy& policy) {
  Json switches = Json::object();
  for (const auto& each : determinism_switches()) switches[each.name] = each.value;
  const bool is_fast = policy.numerics == Numerics::kFast;
  Json json = {{"numerics", to_string(policy.numerics)},
               {"isa", to_string(policy.isa)},
               {"threads", policy.threads},
               {"device", to_string(policy.device)},
               {"precision", to_string(precision_of(policy.mixed_precision))},
               {"matrix_products", is_fast ? matrix_library(policy) : "olmo-harness"},
               {"switches", switches}};
  if (policy.mixed_precision != MixedPrecision::kNone)
    json["mixed_precision"] = to_string(policy.mixed_precision);
  if (policy.gpu != nullptr) {
    json["device_name"] = policy.gpu->name();
    json["device_compiler"] = policy.gpu->compiler();
  }
  return json;
}

}  // namespace olmo::store
