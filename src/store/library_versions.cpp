#include "store/library_versions.h"

#include <hdf5.h>
#include <sqlite3.h>

namespace olmo::store {

std::vector<std::pair<std::string, std::string>> library_versions() {
  // The library refuses to run under another version than that of its header. Asking it would make
  // it clean up at exit, see store/structure_driver.h.
  return {{"sqlite", sqlite3_libversion()},
          {"hdf5", std::to_string(H5_VERS_MAJOR) + "." + std::to_string(H5_VERS_MINOR) + "." +
                       std::to_string(H5_VERS_RELEASE)}};
}

}  // namespace olmo::store
