#include "store/runs/provenance.h"

#include <string>
#include <utility>
#include <vector>

#include <hdf5.h>
#include <nlohmann/json.hpp>
#include <sqlite3.h>

#include "core/compute/machine.h"
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
