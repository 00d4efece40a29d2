#pragma once

#include <filesystem>

namespace olmo {

/// Makes the folder `path` and every level above it that is missing, and syncs the folder that each
/// new one lies in: after a power loss the whole path is there. True if `path` itself was missing.
/// Throws Error(kFailure) naming the level that cannot be made.
bool make_folders(const std::filesystem::path& path);

}  // namespace olmo
