#include "model/parameters.h"

#include "core/error.h"
#include "model/buffer.h"

namespace olmo::model {
namespace {

using Shape = std::vector<std::int64_t>;

bool wants_bias(const ModelConfig& config) {
  return config.bias_for_layer_norm.value_or(config.include_bias);
}

/// Calls visit(name, shape, role, layer, tensor) for every parameter of the config, in the order of
/// OLMo's modules, where `tensor` is its place in `tensors`. The one list of what the network
/// holds.
template <typename Visit>
void visit_parameters(const ModelConfig& config, ModelTensors& tensors, const Visit& visit) {
  using Role = ParameterRole;
  const std::int64_t d = config.d_model, f = config.fused_mlp_size() / 2,
                     v = config.embedding_rows();
  const auto norm = [&](const std::string& name, std::int64_t width, bool affine,
                        std::int64_t layer, NormTensors& place) {
    if (!affine) return;
    visit(name + ".weight", Shape{width}, Role::kNormWeight, layer, place.weight);
    if (wants_bias(config)) visit(name + ".bias", Shape{width}, Role::kNormBias, layer, place.bias);
  };
  tensors.blocks.resize(static_cast<std::size_t>(config.n_layers));
  visit("transformer.wte.weight", Shape{v, d}, Role::kEmbedding, -1, tensors.wte);
  norm("transformer.ln_f", d, config.layer_norm_with_affine, -1, tensors.ln_f);
  for (std::int64_t layer = 0; layer < config.n_layers; ++layer) {
    BlockTensors& block = tensors.blocks[static_cast<std::size_t>(layer)];
    const std::string prefix = "transformer.blocks." + std::to_string(layer) + ".";
    if (config.attention_layer_norm) {
      const bool affine = config.attention_layer_norm_with_affine;
      norm(prefix + "k_norm", config.kv_heads() * config.head_dim(), affine, layer, block.k_norm);
      norm(prefix + "q_norm", d, affine, layer, block.q_norm);
    }
    visit(prefix + "attn_out.weight", Shape{d, d}, Role::kAttnOut, layer, block.attn_out);
    visit(prefix + "ff_out.weight", Shape{d, f}, Role::kFfOut, layer, block.ff_out);
    visit(prefix + "att_proj.weight", Shape{config.qkv_size(), d}, Role::kAttProj, layer,
          block.att_proj);
    visit(prefix + "ff_proj.weight", Shape{2 * f, d}, Role::kFfProj, layer, block.ff_proj);
    norm(prefix + "attn_norm", d, config.layer_norm_with_affine, layer, block.attn_norm);
    norm(prefix + "ff_norm", d, config.layer_norm_with_affine, layer, block.ff_norm);
  }
  if (!config.weight_tying)
    visit("transformer.ff_out.weight", Shape{v, d}, Role::kHead, -1, tensors.head);
}

/// Joins at most a handful of sentences, and counts the rest.
std::string join_limited(const std::vector<std::string>& sentences) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < sentences.size() && i < kShown; ++i)
    text += (i == 0 ? "" : "; ") + sentences[i];
  if (sentences.size() > kShown)
    text += "; and " + std::to_string(sentences.size() - kShown) + " more";
  return text;
}

bool is_readable(at::ScalarType dtype) {
  return dtype == at::kFloat || dtype == at::kBFloat16 || dtype == at::kHalf;
}

struct Wanted {
  std::string_view name;
  at::IntArrayRef shape;
};

/// The tensor of `source` for each of `wanted`; strict, see copy_tensors.
std::vector<at::Tensor> match_tensors(const NamedTensors& source,
                                      const std::vector<Wanted>& wanted) {
  std::unordered_map<std::string_view, const at::Tensor*> by_name;
  std::vector<std::string> errors;
  std::vector<at::Tensor> matched;
  for (const auto& [name, tensor] : source) {
    if (!by_name.emplace(name, &tensor).second) errors.push_back("`" + name + "` is there twice");
  }
  for (const auto& [name, shape] : wanted) {
    const std::string quoted = "`" + std::string(name) + "`";
    const auto found = by_name.find(name);
    if (found == by_name.end()) {
      errors.push_back(quoted + " is missing");
      continue;
    }
    const at::Tensor& given = *found->second;
    if (given.sizes() != shape) {
      errors.push_back(quoted + " has shape " + shape_text(given.sizes()) + ", expected " +
                       shape_text(shape));
    } else if (!is_readable(given.scalar_type())) {
      errors.push_back(quoted + " is " + c10::toString(given.scalar_type()) +
                       ", expected fp32, bf16 or fp16");
    }
    matched.push_back(given);
    by_name.erase(found);
  }
  for (const auto& [name, tensor] : source) {
    if (by_name.erase(name) > 0)
      errors.push_back("`" + name + "` is not a parameter of this model");
  }
  if (!errors.empty()) throw Error(ErrorKind::kInput, "weights: " + join_limited(errors));
  return matched;
}

}  // namespace

std::vector<ParameterSpec> parameter_specs(const ModelConfig& config) {
  std::vector<ParameterSpec> specs;
  ModelTensors places;
  visit_parameters(
      config, places,
      [&](std::string name, Shape shape, ParameterRole role, std::int64_t layer, at::Tensor&) {
        specs.push_back({std::move(name), std::move(shape), role, layer});
      });
  return specs;
}

NamedTensors make_tensors(const std::vector<ParameterSpec>& specs) {
  NamedTensors tensors;
  tensors.reserve(specs.size());
  for (const auto& spec : specs)
    tensors.push_back({spec.name, empty_tensor(spec.shape, at::kFloat)});
  return tensors;
}

ModelTensors place_tensors(const ModelConfig& config, const NamedTensors& tensors) {
  ModelTensors places;
  std::size_t next = 0;
  visit_parameters(config, places,
                   [&](const std::string& name, const Shape& shape, ParameterRole, std::int64_t,
                       at::Tensor& place) {
                     OLMO_CHECK(next < tensors.size());
                     const auto& [given, tensor] = tensors[next++];
                     OLMO_CHECK(given == name && tensor.sizes() == at::IntArrayRef(shape));
                     OLMO_CHECK(tensor.scalar_type() == at::kFloat ||
                                (tensor.scalar_type() == at::kBFloat16 && tensor.dim() == 2));
                     OLMO_CHECK(tensor.is_contiguous());
                     place = tensor;
                   });
  OLMO_CHECK(next == tensors.size());
  if (config.weight_tying) places.head = places.wte;
  return places;
}

void copy_tensors(const NamedTensors& source, const NamedTensors& target) {
  std::vector<Wanted> wanted;
  for (const auto& [name, tensor] : target) wanted.push_back({name, tensor.sizes()});
  const auto matched = match_tensors(source, wanted);
  for (std::size_t i = 0; i < target.size(); ++i) target[i].tensor.copy_(matched[i]);
}

NamedTensors adopt_tensors(const std::vector<ParameterSpec>& specs, NamedTensors source) {
  std::vector<Wanted> wanted;
  for (const auto& spec : specs) wanted.push_back({spec.name, spec.shape});
  auto matched = match_tensors(source, wanted);
  source.clear();  // so that what is widened below is not held twice
  NamedTensors adopted;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const at::Tensor tensor = std::move(matched[i]);
    const bool keeps = tensor.scalar_type() == at::kBFloat16 && tensor.dim() == 2;
    adopted.push_back({specs[i].name, tensor.to(keeps ? at::kBFloat16 : at::kFloat).contiguous()});
  }
  return adopted;
}

}  // namespace olmo::model
