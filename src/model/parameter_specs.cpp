#include "model/parameter_specs.h"

#include <functional>
#include <numeric>

namespace olmo::model {

std::int64_t elements(const ParameterSpec& spec) {
  return std::accumulate(spec.shape.begin(), spec.shape.end(), std::int64_t{1},
                         std::multiplies<>());
}

std::vector<ParameterSpec> parameter_specs(const ModelConfig& config) {
  using Role = ParameterRole;
  const std::int64_t d = config.d_model, f = config.activation_size(), v = config.embedding_rows();
  const bool biased = config.bias_for_layer_norm.value_or(config.include_bias);
  std::vector<ParameterSpec> specs;
  const auto norm = [&](const std::string& name, std::int64_t width, bool affine,
                        std::int64_t layer) {
    if (!affine) return;
    specs.push_back({name + ".weight", {width}, Role::kNormWeight, layer});
    if (biased) specs.push_back({name + ".bias", {width}, Role::kNormBias, layer});
  };
  specs.push_back({"transformer.wte.weight", {v, d}, Role::kEmbedding, -1});
  norm("transformer.ln_f", d, config.layer_norm_with_affine, -1);
  for (std::int64_t layer = 0; layer < config.n_layers; ++layer) {
    const std::string prefix = "transformer.blocks." + std::to_string(layer) + ".";
    if (config.attention_layer_norm) {
      const bool affine = config.attention_layer_norm_with_affine;
      norm(prefix + "k_norm", config.kv_heads() * config.head_dim(), affine, layer);
      norm(prefix + "q_norm", d, affine, layer);
    }
    specs.push_back({prefix + "attn_out.weight", {d, d}, Role::kAttnOut, layer});
    specs.push_back({prefix + "ff_out.weight", {d, f}, Role::kFfOut, layer});
    specs.push_back({prefix + "att_proj.weight", {config.qkv_size(), d}, Role::kAttProj, layer});
    specs.push_back(
        {prefix + "ff_proj.weight", {config.fused_mlp_size(), d}, Role::kFfProj, layer});
    norm(prefix + "attn_norm", d, config.layer_norm_with_affine, layer);
    norm(prefix + "ff_norm", d, config.layer_norm_with_affine, layer);
  }
  if (!config.weight_tying) specs.push_back({"transformer.ff_out.weight", {v, d}, Role::kHead, -1});
  return specs;
}

}  // namespace olmo::model
