#pragma once

namespace olmo::fake {

/// Calls the kernel with pointers to its parameters, as one thread of the emulator.
using Kernel = void (*)(void** arguments);

/// The kernel of ops/gpu/kernels.cu of that name; null if there is none.
Kernel find_kernel(const char* name);

}  // namespace olmo::fake
