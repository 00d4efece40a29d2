#pragma once

#include <string>

namespace olmo {

/// Version, revision, compiler and flags of this program. Every run's record holds them.
struct BuildInfo {
  std::string version;       ///< of olmo-harness
  std::string git_revision;  ///< full hash, "-dirty" appended if tracked files had changes,
                             ///< "unknown" without git
  std::string compiler;
  std::string flags;
  std::string libtorch;  ///< version of the LibTorch headers
};

const BuildInfo& build_info();

}  // namespace olmo
