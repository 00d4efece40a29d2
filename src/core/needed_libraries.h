// What a shared library needs to be loaded. The loader's own message names the first library that
// it misses and no other.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace olmo {

/// The libraries that `library` needs, itself or by way of another one that is here, and that the
/// loader does not find: their names, sorted. Empty for a file that is no 64-bit ELF library. Only
/// files are read; what the system has where the linker's cache alone knows is loaded and closed
/// again.
std::vector<std::string> missing_libraries(const std::filesystem::path& library);

/// `library` and those that it needs, as far as their folders are named: the ones that are cut. The
/// loader does not see that, and the process ends by SIGBUS.
std::vector<std::filesystem::path> cut_libraries(const std::filesystem::path& library);

/// Whether a 64-bit ELF library is shorter than it says.
bool is_cut(const std::filesystem::path& library);

}  // namespace olmo
