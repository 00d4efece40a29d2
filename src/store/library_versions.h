#pragma once

#include <string>
#include <utility>
#include <vector>

namespace olmo::store {

/// Versions of the libraries that are loaded, not those that were compiled against: {"sqlite",
/// "3.40.1"}, {"hdf5", "1.10.8"}.
std::vector<std::pair<std::string, std::string>> library_versions();

}  // namespace olmo::store
