#include "optim/param_groups.h"

#include <algorithm>
#include <array>

#include "core/error.h"

namespace olmo::optim {
namespace {

constexpr std::array<std::string_view, 7> kLinearModules = {
    "att_proj", "attn_out", "ff_proj", "ff_out", "q_proj", "k_proj", "v_proj"};
constexpr std::array<std::string_view, 2> kEmbeddingModules = {"wte", "wpe"};

bool decays(const OptimizerConfig& config, ParamKind kind) {
  switch (kind) {
    case ParamKind::kLinear:
      return true;
    case ParamKind::kEmbedding:
      return config.decay_embeddings;
    case ParamKind::kNorm:
    case ParamKind::kBias:
      return config.decay_norm_and_bias;
  }
  OLMO_CHECK(false);
}

}  // namespace

ParamKind param_kind(std::string_view name) {
  if (name.ends_with("bias")) return ParamKind::kBias;
  constexpr std::string_view kSuffix = ".weight";
  if (name.ends_with(kSuffix)) {
    std::string_view module = name.substr(0, name.size() - kSuffix.size());
    module.remove_prefix(module.rfind('.') + 1);  // npos + 1 is 0: no dot, the whole name
    if (std::ranges::find(kLinearModules, module) != kLinearModules.end())
      return ParamKind::kLinear;
    if (std::ranges::find(kEmbeddingModules, module) != kEmbeddingModules.end()) {
      return ParamKind::kEmbedding;
    }
    if (module.ends_with("_norm") || module == "ln_f") return ParamKind::kNorm;
  }
  throw Error(ErrorKind::kFailure,
              "param_groups: expected the name of a linear layer, an embedding, a norm or a bias "
              "of OLMo, got \"" +
                  std::string(name) + "\"");
}

std::vector<ParamGroup> param_groups(const OptimizerConfig& config,
                                     std::span<const std::string> names) {
  ParamGroup decayed{.names = {}, .weight_decay = config.weight_decay};
  ParamGroup kept{.names = {}, .weight_decay = 0.0};
  for (const std::string& name : names) {
    (decays(config, param_kind(name)) ? decayed : kept).names.push_back(name);
  }
  std::vector<ParamGroup> groups;
  for (ParamGroup* group : {&decayed, &kept}) {
    if (group->names.empty()) continue;
    std::ranges::sort(group->names);
    groups.push_back(std::move(*group));
  }
  return groups;
}

}  // namespace olmo::optim
