#include "model/hf_names.h"

#include "core/error.h"
#include "model/parameters.h"

namespace olmo::model {
namespace {

/// One tensor of OLMo's and the tensors of Hugging Face's that its rows are, from the first row on.
struct Mapping {
  std::string olmo;
  struct Part {
    std::string hf;
    std::int64_t rows;
  };
  std::vector<Part> parts;
};

/// What keeps a config from being an OlmoForCausalLM, or with norm_after an Olmo2ForCausalLM; empty
/// if nothing does.
std::string why_not_hf(const ModelConfig& config) {
  if (config.scale_logits) return "`model.scale_logits`";
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
  return {};
}

void append_block(const ModelConfig& config, std::int64_t layer, std::vector<Mapping>& map) {
  const std::string ours = "transformer.blocks." + std::to_string(layer) + ".";
  const std::string theirs = "model.layers." + std::to_string(layer) + ".";
  const std::int64_t d = config.d_model, kv = config.kv_heads() * config.head_dim(),
                     f = config.fused_mlp_size() / 2;
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

/// In the order of parameter_specs.
std::vector<Mapping> name_map(const ModelConfig& config) {
  if (const auto reason = why_not_hf(config); !reason.empty()) {
    throw Error(ErrorKind::kUsage,
                "Hugging Face's OLMo classes cannot express " + reason + "; use OLMo's own names");
  }
  std::vector<Mapping> map;
  const std::int64_t v = config.embedding_rows();
  map.push_back({"transformer.wte.weight", {{"model.embed_tokens.weight", v}}});
  if (config.norm_after)
    map.push_back({"transformer.ln_f.weight", {{"model.norm.weight", config.d_model}}});
  for (std::int64_t layer = 0; layer < config.n_layers; ++layer) append_block(config, layer, map);
  if (!config.weight_tying) map.push_back({"transformer.ff_out.weight", {{"lm_head.weight", v}}});
  return map;
}

using Index = std::unordered_map<std::string_view, at::Tensor>;

Index index_of(const NamedTensors& tensors) {
  Index index;
  for (const auto& [name, tensor] : tensors) {
    if (!index.emplace(name, tensor).second)
      throw Error(ErrorKind::kInput, "weights: `" + name + "` is there twice");
  }
  return index;
}

at::Tensor take(Index& index, const std::string& name, std::int64_t rows) {
  const auto found = index.find(name);
  if (found == index.end()) throw Error(ErrorKind::kInput, "weights: `" + name + "` is missing");
  const at::Tensor tensor = found->second;
  index.erase(found);
  if (tensor.dim() < 1 || tensor.size(0) != rows) {
    throw Error(ErrorKind::kInput,
                "weights: `" + name + "` must have " + std::to_string(rows) + " rows, got " +
                    (tensor.dim() < 1 ? "a scalar" : std::to_string(tensor.size(0))));
  }
  return tensor;
}

at::Tensor join_rows(const std::vector<at::Tensor>& parts, const std::string& name) {
  if (parts.size() == 1) return parts.front();
  for (const auto& part : parts) {
    if (part.dim() != parts.front().dim() ||
        part.sizes().slice(1) != parts.front().sizes().slice(1) ||
        part.scalar_type() != parts.front().scalar_type()) {
      throw Error(ErrorKind::kInput,
                  "weights: the tensors that make `" + name + "` differ in width or type");
    }
  }
  return at::cat(parts, 0);
}

void expect_none_left(const Index& index, const NamedTensors& given) {
  for (const auto& [name, tensor] : given) {
    if (index.count(name) > 0)
      throw Error(ErrorKind::kInput, "weights: `" + name + "` is not a parameter of this model");
  }
}

}  // namespace

bool has_hf_names(const NamedTensors& tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const NamedTensor& entry) {
    return entry.name.rfind("model.layers.", 0) == 0 ||
           entry.name.rfind("model.embed_tokens.", 0) == 0;
  });
}

NamedTensors to_hf_names(const ModelConfig& config, const NamedTensors& tensors) {
  Index index = index_of(tensors);
  NamedTensors result;
  for (const auto& [name, parts] : name_map(config)) {
    std::int64_t rows = 0;
    for (const auto& part : parts) rows += part.rows;
    const at::Tensor whole = take(index, name, rows);
    std::int64_t first = 0;
    for (const auto& part : parts) {
      result.push_back({part.hf, whole.narrow(0, first, part.rows)});
      first += part.rows;
    }
  }
  expect_none_left(index, tensors);
  return result;
}

NamedTensors from_hf_names(const ModelConfig& config, const NamedTensors& tensors) {
  Index index = index_of(tensors);
  NamedTensors result;
  for (const auto& [name, parts] : name_map(config)) {
    std::vector<at::Tensor> rows;
    for (const auto& part : parts) rows.push_back(take(index, part.hf, part.rows));
    result.push_back({name, join_rows(rows, name)});
  }
  if (const auto head = index.find("lm_head.weight"); config.weight_tying && head != index.end()) {
    if (!at::equal(head->second, result.front().tensor)) {
      throw Error(ErrorKind::kInput,
                  "weights: `lm_head.weight` differs from `model.embed_tokens.weight`, but "
                  "`model.weight_tying` is true");
    }
    index.erase(head);
  }
  expect_none_left(index, tensors);
  return result;
}

NamedTensors strip_wrapper_prefixes(const NamedTensors& tensors) {
  NamedTensors result;
  for (const auto& [name, tensor] : tensors) {
    std::string plain = name;
    for (const std::string_view wrapper : {"_fsdp_wrapped_module.", "_orig_mod."}) {
      for (auto at = plain.find(wrapper); at != std::string::npos; at = plain.find(wrapper))
        plain.erase(at, wrapper.size());
    }
    if (plain.rfind("model.transformer.", 0) == 0)
      plain.erase(0, std::string_view("model.").size());
    result.push_back({std::move(plain), tensor});
  }
  return result;
}

}  // namespace olmo::model
