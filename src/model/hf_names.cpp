#include "model/hf_names.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "model/parameters.h"

namespace olmo::model {
namespace {

/// What keeps a config from being an OlmoForCausalLM, or with norm_after an Olmo2ForCausalLM; empty
/// if nothing does.
std::string why_not_hf(const ModelConfig& config) {
  if (config.activation_type != "swiglu")
    return "`model.activation_type` " + config.activation_type;
  if (config.scale_logits) return "`model.scale_logits`";
  if (!config.norm_after && config.sliding_window)
    return "`model.sliding_window` without `model.norm_after`";
  if (!config.norm_after && config.rope_scaling)
    return "`model.rope_scaling` without `model.norm_after`";
  if (config.bias_for_layer_norm.value_or(false)) return "`model.bias_for_layer_norm`";
  if (config.norm_after) {
    if (config.layer_norm_type != "rms" || !config.layer_norm_with_affine)
      return "norms other than RMS with weights under `model.norm_after`";
    if (!config.attention_layer_norm || !config.attention_layer_norm_with_affine)
      return "`model.norm_after` without `model.attention_layer_norm`";
    if (config.clip_qkv) return "`model.clip_qkv` with `model.norm_after`";
    return {};
  }
  if (config.layer_norm_type == "rms" || config.layer_norm_with_affine)
    return "norms with weights, or RMS norms, without `model.norm_after`";
  if (config.attention_layer_norm) return "`model.attention_layer_norm` without `model.norm_after`";
  if (config.layer_norm_eps != 1e-5) return "`model.layer_norm_eps` other than 1e-5";
  return {};
}

void append_block(const ModelConfig& config, std::int64_t layer, std::vector<HfMapping>& map) {
  const std::string ours = "transformer.blocks." + std::to_string(layer) + ".";
  const std::string theirs = "model.layers." + std::to_string(layer) + ".";
  const std::int64_t d = config.d_model, kv = config.kv_heads() * config.head_dim(),
                     f = config.activation_size();
  if (config.norm_after) {
    map.push_back({ours + "k_norm.weight", {{theirs + "self_attn.k_norm.weight", kv}}});
    map.push_back({ours + "q_norm.weight", {{theirs + "self_attn.q_norm.weight", d}}});
  }
  map.push_back({ours + "attn_out.weight", {{theirs + "self_attn.o_proj.weight", d}}});
  map.push_back({ours + "ff_out.weight", {{theirs + "mlp.down_proj.weight", d}}});
  map.push_back({ours + "att_proj.weight",
                 {{theirs + "self_attn.q_proj.weight", d},
                  {theirs + "self_attn.k_proj.weight", kv},
                  {theirs + "self_attn.v_proj.weight", kv}}});
  map.push_back({ours + "ff_proj.weight",
                 {{theirs + "mlp.up_proj.weight", f}, {theirs + "mlp.gate_proj.weight", f}}});
  if (config.norm_after) {
    map.push_back({ours + "attn_norm.weight", {{theirs + "post_attention_layernorm.weight", d}}});
    map.push_back({ours + "ff_norm.weight", {{theirs + "post_feedforward_layernorm.weight", d}}});
  }
}

std::string without_wrappers(std::string name) {
  for (const std::string_view wrapper : {"_fsdp_wrapped_module.", "_orig_mod."}) {
    for (auto at = name.find(wrapper); at != std::string::npos; at = name.find(wrapper))
      name.erase(at, wrapper.size());
  }
  for (const std::string_view wrapper : {"module.", "model."})
    if (name.starts_with(std::string(wrapper) + "transformer.")) name.erase(0, wrapper.size());
  return name;
}

/// Of a tensor of `transformer.block_groups.GROUP.BLOCK.REST`.
struct PlaceInGroups {
  std::int32_t group = 0, block = 0;
  std::string_view rest;
};

std::optional<PlaceInGroups> place_in_groups(std::string_view name) {
  constexpr std::string_view kGroups = "transformer.block_groups.";
  if (!name.starts_with(kGroups)) return std::nullopt;
  PlaceInGroups place{.rest = name.substr(kGroups.size())};
  for (std::int32_t* index : {&place.group, &place.block}) {
    const char* const end = place.rest.data() + place.rest.size();
    const auto [after, error] = std::from_chars(place.rest.data(), end, *index);
    if (error != std::errc() || *index < 0 || after == end || *after != '.') return std::nullopt;
    place.rest = {after + 1, end};
  }
  return place;
}

}  // namespace

bool has_olmo3_attention(const ModelConfig& config) {
  return config.sliding_window || config.rope_scaling;
}

std::vector<HfMapping> hf_name_map(const ModelConfig& config) {
  if (const auto reason = why_not_hf(config); !reason.empty()) {
    throw Error(ErrorKind::kUsage,
                "Hugging Face's OLMo classes cannot express " + reason + "; use OLMo's own names");
  }
  std::vector<HfMapping> map;
  const std::int64_t v = config.embedding_rows();
  map.push_back({"transformer.wte.weight", {{"model.embed_tokens.weight", v}}});
  if (config.norm_after)
    map.push_back({"transformer.ln_f.weight", {{"model.norm.weight", config.d_model}}});
  for (std::int64_t layer = 0; layer < config.n_layers; ++layer) append_block(config, layer, map);
  if (!config.weight_tying) map.push_back({"transformer.ff_out.weight", {{"lm_head.weight", v}}});
  return map;
}

std::vector<HfMapping> own_name_map(const ModelConfig& config) {
  std::vector<HfMapping> map;
  for (const auto& spec : parameter_specs(config))
    map.push_back({spec.name, {{spec.name, spec.shape.front()}}});
  return map;
}

bool is_hf_name(std::string_view name) {
  return name.starts_with("model.layers.") || name.starts_with("model.embed_tokens.");
}

std::string hf_name_of_olmo_core(const std::string& name) {
  using Names = std::pair<std::string_view, std::string_view>;
  constexpr std::array<Names, 3> kOfModel = {{{"embeddings.weight", "model.embed_tokens.weight"},
                                              {"lm_head.norm.weight", "model.norm.weight"},
                                              {"lm_head.w_out.weight", "lm_head.weight"}}};
  constexpr std::array<Names, 11> kOfBlock = {
      {{"attention.w_q.weight", "self_attn.q_proj.weight"},
       {"attention.w_k.weight", "self_attn.k_proj.weight"},
       {"attention.w_v.weight", "self_attn.v_proj.weight"},
       {"attention.w_out.weight", "self_attn.o_proj.weight"},
       {"attention.q_norm.weight", "self_attn.q_norm.weight"},
       {"attention.k_norm.weight", "self_attn.k_norm.weight"},
       {"attention_norm.weight", "post_attention_layernorm.weight"},
       {"feed_forward.w1.weight", "mlp.gate_proj.weight"},
       {"feed_forward.w2.weight", "mlp.down_proj.weight"},
       {"feed_forward.w3.weight", "mlp.up_proj.weight"},
       {"feed_forward_norm.weight", "post_feedforward_layernorm.weight"}}};
  constexpr std::string_view kBlocks = "blocks.";
  const auto named = [](const auto& names, std::string_view olmo_core) {
    const auto found = std::ranges::find(names, olmo_core, &Names::first);
    return found == names.end() ? std::string() : std::string(found->second);
  };
  auto of_model = named(kOfModel, name);
  if (!of_model.empty()) return of_model;
  const auto dot = name.find('.', kBlocks.size());
  if (!name.starts_with(kBlocks) || dot == std::string::npos) return name;
  const auto of_block = named(kOfBlock, std::string_view(name).substr(dot + 1));
  if (of_block.empty()) return name;
  return "model.layers." + name.substr(kBlocks.size(), dot + 1 - kBlocks.size()) + of_block;
}

std::vector<std::string> plain_names(std::vector<std::string> names) {
  std::int64_t per_group = 1;
  for (auto& name : names) {
    name = without_wrappers(std::move(name));
    if (const auto place = place_in_groups(name))
      per_group = std::max<std::int64_t>(per_group, std::int64_t{place->block} + 1);
  }
  for (auto& name : names) {
    const auto place = place_in_groups(name);
    if (place)
      name = "transformer.blocks." + std::to_string(place->group * per_group + place->block) + "." +
             std::string(place->rest);
  }
  return names;
}

}  // namespace olmo::model
