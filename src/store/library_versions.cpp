#include "store/library_versions.h"

#include <hdf5.h>
#include <sqlite3.h>

namespace olmo::store {

std::vector<std::pair<std::string, std::string>> library_versions() {
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return {{"sqlite", sqlite3_libversion()},
          {"hdf5",
           std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release)}};
}

}  // namespace olmo::store
