#include "model/held_units.h"

#include "core/error.h"

namespace olmo::model {

HeldUnits::HeldUnits(const ModelConfig& config, const Dtypes& dtypes, NamedTensors parameters)
    : Units(UnitMap(config)),
      parameters_(std::move(parameters)),
      weights_(config, dtypes, parameters_) {
  OLMO_CHECK(parameters_.size() == parameter_specs(config).size());
}

const ModelTensors& HeldUnits::acquire(std::size_t, Pass) { return weights_.tensors(); }
void HeldUnits::release(std::size_t, Pass) {}
const ModelTensors& HeldUnits::gradients(std::size_t) { return gradients_; }
void HeldUnits::gradients_done(std::size_t) {}

}  // namespace olmo::model
