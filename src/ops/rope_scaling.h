#pragma once

#include <cstdint>
#include <optional>

namespace olmo::ops {

/// How rotations are slowed down for sequences longer than a model was first trained on: YaRN (Peng
/// et al. 2023, arXiv:2309.00071, section 3), under the names of transformers' rope_scaling.
struct RopeScaling {
  double factor = 8.0;  ///< what the longer sequences are of the original ones
  std::int64_t original_max_position_embeddings = 8192;
  double beta_fast =
      32.0;                ///< pairs that turn more often over the original length keep their speed
  double beta_slow = 1.0;  ///< those that turn less often become `factor` times slower
  /// Of cosines and sines; 0.1 ln(factor) + 1 if absent.
  std::optional<double> attention_factor;
};

}  // namespace olmo::ops
