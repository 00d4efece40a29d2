// Where a package finds LibTorch. A package does not hold it: it is some fifty times as large as all
// else, and who works with PyTorch has it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace olmo::launcher {

struct LibTorch {
  std::filesystem::path libraries;  ///< the folder with libtorch_cpu.so
  std::string version;              ///< e.g. "2.11.0+cu130"; empty if no file tells it
};

/// The LibTorch whose libraries are in `lib/` or `torch/lib/` of `folder`; nothing if none are.
std::optional<LibTorch> libtorch_in(const std::filesystem::path& folder);

/// Where to look, in this order.
struct Places {
  std::string named;                                ///< by the user, in OLMO_LIBTORCH
  std::vector<std::filesystem::path> environments;  ///< of Python: they have lib/python3.X
  std::filesystem::path cache;                      ///< of this program; empty if there is none
};

/// The places of this process, whose package is in `prefix` (it has bin/olmo-harness).
Places places_of(const std::filesystem::path& prefix);

/// The first LibTorch that lacks no library and whose minor version is that of `needed` ("2.11.0"):
/// its C++ interface changes with each. Throws Error(kUsage) if there is none, naming those that do not fit and `fetcher`, the
/// command that fetches one. A LibTorch that the user has named is taken or refused.
LibTorch find_libtorch(const Places& places, const std::string& needed, const std::string& fetcher);

}  // namespace olmo::launcher
