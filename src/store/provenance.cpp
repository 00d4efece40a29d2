#include "store/provenance.h"

#include <nlohmann/json.hpp>

#include "core/gpu.h"
#include "core/json.h"
#include "core/machine.h"
#include "core/policy.h"
#include "core/process.h"
#include "store/library_versions.h"

namespace olmo::store {

Json policy_json(const Policy& policy) {
  Json switches = Json::object();
  for (const auto& each : determinism_switches()) switches[each.name] = each.value;
  const bool is_fast = policy.numerics == Numerics::kFast;
  Json json = {{"numerics", to_string(policy.numerics)},
               {"isa", to_string(policy.isa)},
               {"threads", policy.threads},
               {"device", to_string(policy.device)},
               {"precision", to_string(policy.precision)},
               {"matrix_products", is_fast ? matrix_library() : "olmo-harness"},
               {"switches", switches}};
  if (policy.gpu != nullptr) {
    json["device_name"] = policy.gpu->name();
    json["device_compiler"] = policy.gpu->compiler();
  }
  return json;
}

Json build_json() {
  const BuildInfo& info = build_info();
  Json build = {{"version", info.version},
                {"git_revision", info.git_revision},
                {"compiler", info.compiler},
                {"flags", info.flags},
                {"libtorch", info.libtorch}};
  for (const auto& [library, version] : store::library_versions()) build[library] = version;
  return build;
}

Json environment_json() { return Json::parse(json_text(environment())); }

}  // namespace olmo::store
