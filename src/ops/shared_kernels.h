#pragma once

#include "ops/dispatch.h"
#include "ops/kernels/pointwise.h"
#include "ops/kernels/row_ops.h"

// The kernels that several operations take: pointwise_kernels_for(isa), norm_kernels_for(isa).

namespace olmo::ops {

OLMO_ISA_TABLE(PointwiseKernels, pointwise_kernels)
OLMO_ISA_TABLE(NormKernels, norm_kernels)

}  // namespace olmo::ops
