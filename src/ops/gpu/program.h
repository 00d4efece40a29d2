#pragma once

#include "core/gpu.h"

namespace olmo::ops {

/// gpu/kernels.cu and all that it includes, from the binary.
GpuProgram gpu_program();

}  // namespace olmo::ops
