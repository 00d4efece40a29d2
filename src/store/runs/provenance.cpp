#include "store/runs/provenance.h"

#include <string>
#include <utility>
#include <vector>

#include <hdf5.h>
#include <nlohmann/json.hpp>
#include <sqlite3.h>

#include "core/compute/gpu.h"
#include "core/compute/machine.h"
#include "core/compute/policy.h"
#include "core/files/json.h"
#include "core/process/process.h"

namespace olmo::store {
namespace {

/// Versions of the libraries that are loaded, not those that were compiled against.
std::vector<std::pair<std::string, std::string>> library_versions() {
  // The library refuses to run under another version than that of its header. Asking it would make
  // it clean up at exit, see store/checkpoint/structure_image.h.
  return {{"sqlite", sqlite3_libversion()},
          {"hdf5", std::to_string(H5_VERS_MAJOR) + "." + std::to_string(H5_VERS_MINOR) + "." +
                       std::to_string(H5_VERS_RELEASE)}};
}

}  // namespace

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

Json build_json() {
  const BuildInfo& info = build_info();
  Json build = {{"version", info.version},
                {"git_revision", info.git_revision},
                {"compiler", info.compiler},
                {"flags", info.flags},
                {"libtorch", info.libtorch}};
  for (const auto& [library, version] : library_versions()) build[library] = version;
  return build;
}

Json environment_json() { return Json::parse(json_text(environment())); }

}  // namespace olmo::store
