#pragma once

#include <cstdint>

namespace olmo::ops {

struct AdamWStep;
struct LionWStep;

/// The elementwise updates of ops/adamw.h over `count` elements.
struct OptimizerKernels {
  void (*adamw)(const AdamWStep& step, const float* grad, float* parameter, float* exp_avg,
                float* exp_avg_sq, std::int64_t count);
  void (*lionw)(const LionWStep& step, const float* grad, float* parameter, float* exp_avg,
                std::int64_t count);
};

}  // namespace olmo::ops
