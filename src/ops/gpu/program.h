#pragma once

#include "core/gpu.h"

namespace olmo::ops {

/// The source text of gpu/kernels.cu and of all that it includes, which the binary carries.
GpuProgram gpu_program();

}  // namespace olmo::ops
