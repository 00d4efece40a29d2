// All weights of a model in the memory of one process: units are answered at once, without a copy.
#pragma once

#include "core/compute/named_tensors.h"
#include "model/precision.h"
#include "model/units.h"

namespace olmo::model {

class HeldUnits : public Units {
 public:
  /// Holds `parameters` themselves, all of the config's, in order. What is rounded for a pass is
  /// undefined until parameters_changed().
  HeldUnits(const ModelConfig& config, const Dtypes& dtypes, NamedTensors parameters);

  [[nodiscard]] const NamedTensors& parameters() const { return parameters_; }
  void parameters_changed() const { weights_.update(); }
  /// Where passes write gradients from now on.
  void write_gradients_to(ModelTensors gradients) { gradients_ = std::move(gradients); }

  const ModelTensors& acquire(std::size_t unit, Pass pass) override;
  void release(std::size_t unit, Pass pass) override;
  const ModelTensors& gradients(std::size_t unit) override;
  void gradients_done(std::size_t unit) override;

 private:
  NamedTensors parameters_;
  ComputeWeights weights_;
  ModelTensors gradients_;
};

}  // namespace olmo::model
