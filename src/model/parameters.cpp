#include "model/parameters.h"

#include <algorithm>
#include <cmath>

#include <c10/util/accumulate.h>

#include "core/compute/named_tensors.h"
#include "core/compute/parallel.h"
#include "core/compute/random.h"
#include "core/error.h"

namespace olmo::model {
namespace {

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

constexpr double kDefaultCutoff = 3.0;  // of mitchell and full_megatron

double inverse_sqrt(std::int64_t n) { return 1.0 / std::sqrt(static_cast<double>(n)); }

double normal_std(const ModelConfig& config, const ParameterSpec& spec) {
  // OLMo writes `emb_init_std or init_std`.
  return spec.role == ParameterRole::kEmbedding ? config.emb_init_std.value_or(config.init_std)
                                                : config.init_std;
}

double mitchell_std(const ModelConfig& config, const ParameterSpec& spec) {
  switch (spec.role) {
    case ParameterRole::kEmbedding:
      return config.emb_init_std.value_or(inverse_sqrt(config.d_model));
    case ParameterRole::kAttnOut:
    case ParameterRole::kFfOut:
      return inverse_sqrt(2 * spec.shape[1] * (spec.layer + 1));
    default:
      return inverse_sqrt(config.d_model);
  }
}

double full_megatron_std(const ModelConfig& config, const ParameterSpec& spec) {
  switch (spec.role) {
    case ParameterRole::kEmbedding:
      if (config.emb_init_std) return *config.emb_init_std;
      return config.init_std *
             (config.scale_emb_init ? std::sqrt(static_cast<double>(config.d_model)) : 1.0);
    case ParameterRole::kHead:
      return inverse_sqrt(config.d_model);
    case ParameterRole::kAttnOut:
    case ParameterRole::kFfOut:
      return config.init_std * inverse_sqrt(2 * config.n_layers);
    default:
      return config.init_std;
  }
}

}  // namespace

at::Tensor Buffer::shaped(std::initializer_list<std::int64_t> shape) {
  const std::vector<std::int64_t> sizes(shape);
  if (view_.defined() && view_.sizes() == at::IntArrayRef(sizes)) return view_;
  const std::int64_t count = c10::multiply_integers(sizes);
  if (!memory_.defined() || memory_.numel() < count) {
    memory_.reset();  // before the new memory is taken: both together may not fit
    view_.reset();
    memory_ = new_tensor({count}, options_);
  }
  view_ = memory_.narrow(0, 0, count).view(sizes);
  return view_;
}

NamedTensors make_tensors(const std::vector<ParameterSpec>& specs, at::TensorOptions options) {
  NamedTensors tensors;
  tensors.reserve(specs.size());
  for (const auto& spec : specs) tensors.push_back({spec.name, new_tensor(spec.shape, options)});
  return tensors;
}

namespace {

/// The norm whose weight or bias the parameter is.
NormTensors& norm_of(const ParameterSpec& spec, ModelTensors& tensors) {
  const std::string module = spec.name.substr(0, spec.name.rfind('.'));
  if (spec.layer < 0) return tensors.ln_f;
  BlockTensors& block = tensors.blocks[static_cast<std::size_t>(spec.layer)];
  if (module.ends_with(".attn_norm")) return block.attn_norm;
  if (module.ends_with(".ff_norm")) return block.ff_norm;
  return module.ends_with(".q_norm") ? block.q_norm : block.k_norm;
}

at::Tensor& place_of(const ParameterSpec& spec, ModelTensors& tensors) {
  const auto block = [&]() -> BlockTensors& {
    return tensors.blocks[static_cast<std::size_t>(spec.layer)];
  };
  switch (spec.role) {
    case ParameterRole::kEmbedding:
      return tensors.wte;
    case ParameterRole::kHead:
      return tensors.head;
    case ParameterRole::kAttProj:
      return block().att_proj;
    case ParameterRole::kAttnOut:
      return block().attn_out;
    case ParameterRole::kFfProj:
      return block().ff_proj;
    case ParameterRole::kFfOut:
      return block().ff_out;
    case ParameterRole::kNormWeight:
      return norm_of(spec, tensors).weight;
    case ParameterRole::kNormBias:
      return norm_of(spec, tensors).bias;
  }
  OLMO_CHECK(false);
}

/// `whole`: no parameter may be missing.
ModelTensors sort_tensors(const ModelConfig& config, const NamedTensors& tensors, bool whole) {
  ModelTensors places;
  places.blocks.resize(static_cast<std::size_t>(config.n_layers));
  std::size_t next = 0;
  for (const auto& spec : parameter_specs(config)) {
    const bool given = next < tensors.size() && tensors[next].name == spec.name;
    OLMO_CHECK(given || !whole);
    if (!given) continue;
    const at::Tensor& tensor = tensors[next++].tensor;
    OLMO_CHECK(tensor.sizes() == at::IntArrayRef(spec.shape));
    OLMO_CHECK(tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kBFloat16);
    OLMO_CHECK(tensor.is_contiguous());
    place_of(spec, places) = tensor;
  }
  OLMO_CHECK(next == tensors.size());
  if (config.weight_tying) places.head = places.wte;
  return places;
}

}  // namespace

ModelTensors place_tensors(const ModelConfig& config, const NamedTensors& tensors) {
  return sort_tensors(config, tensors, /*whole=*/true);
}

ModelTensors place_some(const ModelConfig& config, const NamedTensors& tensors) {
  return sort_tensors(config, tensors, /*whole=*/false);
}

void copy_tensors(const NamedTensors& source, const NamedTensors& target) {
  std::vector<Wanted> wanted;
  for (const auto& [name, tensor] : target) wanted.push_back({name, tensor.sizes()});
  const auto matched = match_tensors(source, wanted);
  for (std::size_t i = 0; i < target.size(); ++i) target[i].tensor.copy_(matched[i]);
}

NamedTensors match_tensors(const std::vector<ParameterSpec>& specs, const NamedTensors& source) {
  std::vector<Wanted> wanted;
  for (const auto& spec : specs) wanted.push_back({spec.name, spec.shape});
  auto tensors = match_tensors(source, wanted);
  NamedTensors matched;
  for (std::size_t i = 0; i < specs.size(); ++i)
    matched.push_back({specs[i].name, std::move(tensors[i])});
  return matched;
}

NamedTensors adopt_tensors(const std::vector<ParameterSpec>& specs, NamedTensors source) {
  NamedTensors adopted = match_tensors(specs, source);
  source.clear();  // so that what is widened below is not held twice
  for (auto& named : adopted) {
    const at::Tensor tensor = std::move(named.tensor);
    const bool keeps = tensor.scalar_type() == at::kBFloat16 && tensor.dim() == 2;
    named.tensor = tensor.to(keeps ? at::kBFloat16 : at::kFloat).contiguous();
  }
  return adopted;
}

InitRule init_rule(const ModelConfig& config, const ParameterSpec& spec) {
  if (spec.role == ParameterRole::kNormWeight || spec.role == ParameterRole::kNormBias) return {};
  if (config.init_fn == "normal") return {normal_std(config, spec), config.init_cutoff_factor};
  const double cutoff = config.init_cutoff_factor.value_or(kDefaultCutoff);
  if (config.init_fn == "mitchell") return {mitchell_std(config, spec), cutoff};
  if (config.init_fn == "full_megatron") return {full_megatron_std(config, spec), cutoff};
  throw Error(
      ErrorKind::kUsage,
      "`model.init_fn` must be mitchell, normal or full_megatron, got '" + config.init_fn + "'");
}

void init_part(const Policy& policy, const ModelConfig& config, std::uint64_t seed,
               const ParameterSpec& spec, std::int64_t begin, std::span<float> out) {
  const auto size = static_cast<std::int64_t>(out.size());
  OLMO_CHECK(begin >= 0 && begin + size <= elements(spec));
  if (spec.role == ParameterRole::kNormWeight || spec.role == ParameterRole::kNormBias) {
    std::ranges::fill(out, spec.role == ParameterRole::kNormWeight ? 1.0F : 0.0F);
    return;
  }
  const InitRule rule = init_rule(config, spec);
  const PhiloxStream stream(seed, spec.name);
  constexpr std::int64_t kGrain = 1 << 16;
  parallel_for(0, size, kGrain, [&](std::int64_t first, std::int64_t last) {
    stream.fill_normal(
        policy, static_cast<std::uint64_t>(begin + first), rule.std, rule.cutoff,
        out.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first)));
  });
}

void init_parameters(const Policy& policy, const ModelConfig& config, std::uint64_t seed,
                     const NamedTensors& parameters) {
  const auto specs = parameter_specs(config);
  OLMO_CHECK(specs.size() == parameters.size());
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const auto& [name, tensor] = parameters[i];
    OLMO_CHECK(name == specs[i].name && tensor.sizes() == at::IntArrayRef(specs[i].shape));
    const at::Tensor drawn =
        tensor.is_cpu() ? tensor : new_tensor(tensor.sizes(), tensor.scalar_type());
    init_part(policy, config, seed, specs[i], 0, mutable_host_span<float>(drawn));
    if (!tensor.is_cpu()) copy_to_device(policy, drawn, tensor);
  }
}

}  // namespace olmo::model
