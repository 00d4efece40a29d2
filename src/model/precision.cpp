#include "model/precision.h"

#include <algorithm>

#include "core/error.h"

namespace olmo::model {

at::ScalarType Dtypes::of(ParameterRole role) const {
  switch (role) {
    case ParameterRole::kEmbedding:
      return embedding;
    case ParameterRole::kNormWeight:
    case ParameterRole::kNormBias:
      return norm;
    case ParameterRole::kHead:
    case ParameterRole::kAttProj:
    case ParameterRole::kAttnOut:
    case ParameterRole::kFfProj:
    case ParameterRole::kFfOut:
      return matrix;
  }
  return matrix;
}

Dtypes dtypes_of(const ModelConfig& config, MixedPrecision mixed) {
  Dtypes dtypes;
  if (mixed == MixedPrecision::kNone) return dtypes;
  const bool all = mixed == MixedPrecision::kMixed;
  const bool low = config.layer_norm_type == "low_precision";
  // OLMo's RMS norm gives what it reads its type again; a weight in fp32 then makes it fp32.
  const bool plain_rms = config.layer_norm_type == "rms" && !config.layer_norm_with_affine;
  const auto bf16_if = [](bool rounds) { return rounds ? at::kBFloat16 : at::kFloat; };
  dtypes.stream = bf16_if(all);
  dtypes.product = at::kBFloat16;
  dtypes.term = bf16_if(all || low || plain_rms);
  dtypes.matrix = at::kBFloat16;
  dtypes.embedding = bf16_if(all);
  dtypes.norm = bf16_if(all || low);
  dtypes.norm_rounds_input = low && !all;
  return dtypes;
}

ComputeWeights::ComputeWeights(const ModelConfig& config, const Dtypes& dtypes,
                               const NamedTensors& parameters) {
  NamedTensors used;
  const auto specs = parameter_specs(config);
  auto spec = specs.begin();
  for (const NamedTensor& given : parameters) {
    spec = std::find_if(spec, specs.end(),
                        [&](const ParameterSpec& each) { return each.name == given.name; });
    OLMO_CHECK(spec != specs.end());
    used.push_back({given.name, copy_of(given.tensor, dtypes.of(spec->role))});
  }
  tensors_ = place_some(config, used);
  // A tied table may be looked up in fp32 and multiplied in bf16.
  if (config.weight_tying && tensors_.wte.defined() && dtypes.matrix != dtypes.embedding)
    tensors_.head = copy_of(tensors_.wte, dtypes.matrix);
}

at::Tensor ComputeWeights::copy_of(const at::Tensor& parameter, at::ScalarType dtype) {
  // Parameters in bf16 are an evaluation's. What is computed in fp32 reads matrices as they are.
  const bool readable = dtype == at::kFloat && parameter.scalar_type() == at::kBFloat16;
  if (parameter.scalar_type() == dtype || readable) return parameter;
  copies_.push_back({parameter, new_tensor(parameter.sizes(), parameter.options().dtype(dtype))});
  return copies_.back().copy;
}

void ComputeWeights::update() const {
  for (const auto& [parameter, copy] : copies_) copy.copy_(parameter);
}

std::int64_t ComputeWeights::bytes() const {
  std::int64_t bytes = 0;
  for (const auto& each : copies_) bytes += static_cast<std::int64_t>(each.copy.nbytes());
  return bytes;
}

}  // namespace olmo::model
