#include "model/held_units.h"

#include "model/thirds.h"
#include "support/catch.h"
#include "support/model_config_json.h"

using namespace olmo;
using namespace olmo::model;

TEST_CASE("one process answers every unit with its parameters themselves", "[model]") {
  const auto config = test::tiny_config();
  const auto parameters = thirds(config);
  HeldUnits units(config, {}, parameters);
  const ModelTensors& root = units.acquire(UnitMap::kRoot, Pass::kForward);
  CHECK(root.wte.is_same(parameters.front().tensor));
  CHECK(units.acquire(2, Pass::kBackward).blocks[1].ff_proj.is_same(parameters.back().tensor));
  CHECK(&units.acquire(1, Pass::kEvaluation) == &root);
}

TEST_CASE("gradients go where the caller says, until it says otherwise", "[model]") {
  const auto config = test::tiny_config();
  HeldUnits units(config, {}, thirds(config));
  for (int set = 0; set < 2; ++set) {
    const auto gradients = make_tensors(parameter_specs(config));
    units.write_gradients_to(place_tensors(config, gradients));
    CHECK(units.gradients(UnitMap::kRoot).wte.is_same(gradients.front().tensor));
    CHECK(units.gradients(2).blocks[1].ff_proj.is_same(gradients.back().tensor));
  }
}

TEST_CASE("what is rounded follows the parameters when they have changed", "[model]") {
  const auto config = test::tiny_config();
  const auto parameters = thirds(config);
  HeldUnits units(config, dtypes_of(config, MixedPrecision::kMixed), parameters);
  units.parameters_changed();
  for (const auto& [name, tensor] : parameters) tensor.fill_(2.0);
  const at::Tensor used = units.acquire(UnitMap::kRoot, Pass::kForward).wte;
  CHECK(static_cast<float>(host_span<c10::BFloat16>(used).front()) == 0.333984375F);
  units.parameters_changed();
  CHECK(static_cast<float>(host_span<c10::BFloat16>(used).front()) == 2.0F);
}
