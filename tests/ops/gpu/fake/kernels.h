#pragma once

#include <functional>

namespace olmo::fake {

/// A kernel of ops/gpu/kernels.cu.
struct Kernel {
  const char* name;
  const char* function;  ///< that implements it
  /// What one thread of the emulator does, with copies of the parameters that `arguments` point to.
  std::function<void()> (*bind)(void** arguments);
};

/// The kernel of that name; null if there is none.
__attribute__((visibility("default"))) const Kernel* find_kernel(const char* name);

}  // namespace olmo::fake
