// What a shared library needs to be loaded. The loader's own message names the first library that
// it misses and no other.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace olmo {

/// The libraries that `library` needs, itself or by way of another one that is here, and that the
/// loader does not find: their names, sorted. Empty for a file that is no 64-bit ELF library. Only
/// files are read; what is in no named folder and not in the loader's cache is loaded and closed
/// again.
std::vector<std::string> missing_libraries(const std::filesystem::path& library);

/// `library` and those that it needs, as far as their folders are named or the loader's cache has
/// them: the ones that are cut. The loader does not see that, and the process ends by SIGBUS.
std::vector<std::filesystem::path> cut_libraries(const std::filesystem::path& library);

/// Where the loader finds a library by its name alone: in a folder of LD_LIBRARY_PATH, or where its
/// cache says. Nothing if neither has it.
std::optional<std::filesystem::path> find_library(const std::string& name);

/// Whether a 64-bit ELF library is shorter than it says.
bool is_cut(const std::filesystem::path& library);

}  // namespace olmo
