#include "model/init.h"

#include <cmath>

#include <ATen/Parallel.h>

#include "core/error.h"
#include "core/host_tensor.h"
#include "core/philox.h"

namespace olmo::model {
namespace {

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

void init_parameters(const Policy& policy, const ModelConfig& config, std::uint64_t seed,
                     const NamedTensors& parameters) {
  const auto specs = parameter_specs(config);
  OLMO_CHECK(specs.size() == parameters.size());
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const auto& [name, tensor] = parameters[i];
    OLMO_CHECK(name == specs[i].name && tensor.sizes() == at::IntArrayRef(specs[i].shape));
    if (specs[i].role == ParameterRole::kNormWeight || specs[i].role == ParameterRole::kNormBias) {
      tensor.fill_(specs[i].role == ParameterRole::kNormWeight ? 1.0 : 0.0);
      continue;
    }
    const InitRule rule = init_rule(config, specs[i]);
    const PhiloxStream stream(seed, name);
    const auto values = mutable_host_span<float>(tensor);
    constexpr std::int64_t kGrain = 1 << 16;
    at::parallel_for(0, tensor.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      stream.fill_normal(policy, static_cast<std::uint64_t>(begin), rule.std, rule.cutoff,
                         values.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
    });
  }
}

}  // namespace olmo::model
