// The system's list of shared libraries, which ldconfig writes and the loader reads.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace olmo {

/// The files of this processor's kind that the list has under `name` ("libz.so.1"), in the order in
/// which the loader considers them. Empty where there is no list, or none of glibc's format
/// (dl-cache.h, version 1.1).
std::vector<std::filesystem::path> cached_libraries(
    const std::string& name, const std::filesystem::path& cache = "/etc/ld.so.cache");

}  // namespace olmo
