#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace olmo::test {

/// What a launcher looks at of a LibTorch: `folder` as the `torch` of a Python package.
inline void fake_libtorch(const std::filesystem::path& folder, const std::string& version) {
  std::filesystem::create_directories(folder / "lib");
  std::ofstream(folder / "lib/libtorch_cpu.so") << "no library";
  std::ofstream(folder / "version.py")
      << "from typing import Optional\n\n__all__ = ['__version__', 'cuda']\n__version__ = '"
      << version << "'\ncuda: Optional[str] = None\n";
}

}  // namespace olmo::test
