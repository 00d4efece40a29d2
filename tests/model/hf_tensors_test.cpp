#include "model/hf_tensors.h"

#include "core/compute/libtorch.h"
#include "core/error.h"
#include "model/parameters.h"
#include "support/catch.h"
#include "support/golden_tensors.h"
#include "support/model_config_json.h"

using olmo::NamedTensors;
using olmo::model::ModelConfig;
using olmo::model::to_hf_names;
using olmo::test::same_bits;

namespace {

NamedTensors weights_of(const ModelConfig& config) {
  auto parameters = olmo::model::make_tensors(olmo::model::parameter_specs(config));
  olmo::model::init_parameters(olmo::resolve_policy("portable", "auto", 0), config, 1, parameters);
  return parameters;
}

const at::Tensor& find(const NamedTensors& tensors, const std::string& name) {
  for (const auto& entry : tensors) {
    if (entry.name == name) return entry.tensor;
  }
  throw olmo::Error(olmo::ErrorKind::kInput, name + " is missing");
}

}  // namespace

TEST_CASE("att_proj is split into q, k, v and ff_proj into up, gate", "[model]") {
  const auto config = olmo::test::tiny_olmo2();
  const auto weights = weights_of(config);
  const auto theirs = to_hf_names(config, weights);
  const auto& packed = find(weights, "transformer.blocks.1.att_proj.weight");
  CHECK(same_bits(find(theirs, "model.layers.1.self_attn.q_proj.weight"), packed.narrow(0, 0, 32)));
  CHECK(
      same_bits(find(theirs, "model.layers.1.self_attn.k_proj.weight"), packed.narrow(0, 32, 16)));
  CHECK(
      same_bits(find(theirs, "model.layers.1.self_attn.v_proj.weight"), packed.narrow(0, 48, 16)));
  const auto& fused = find(weights, "transformer.blocks.0.ff_proj.weight");
  CHECK(same_bits(find(theirs, "model.layers.0.mlp.up_proj.weight"), fused.narrow(0, 0, 128)));
  CHECK(same_bits(find(theirs, "model.layers.0.mlp.gate_proj.weight"), fused.narrow(0, 128, 128)));
}
