// The shared libraries that this process runs on.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace olmo {

struct LoadedLibrary {
  std::string name;            ///< "sqlite3" of libsqlite3.so.0
  std::string version;         ///< of the file's real name, "0.8.6"; empty where that tells none
  std::filesystem::path path;  ///< real, after links
};

/// In the order in which the loader took them.
std::vector<LoadedLibrary> loaded_libraries();

/// Name and version of a library's file: "libzip.so.4.0" is {"zip", "4.0"}. Wheels put a hash
/// behind the name ("libzip-1a2b3c4d.so.4.0"), which is left out.
LoadedLibrary library_named(const std::filesystem::path& path);

}  // namespace olmo
