#include "model/recomputation.h"

#include <algorithm>

#include "core/config_checks.h"

namespace olmo::model {
namespace {

/// Blocks whose number is a multiple of `period`, or with `others` all but those.
struct WholeBlocks {
  std::string_view mode;
  std::int64_t period;
  bool others;
};
constexpr std::array<WholeBlocks, 7> kWholeBlocks = {{{"whole_layer", 1, false},
                                                      {"one_in_two", 2, false},
                                                      {"one_in_three", 3, false},
                                                      {"one_in_four", 4, false},
                                                      {"one_in_eight", 8, false},
                                                      {"two_in_three", 3, true},
                                                      {"three_in_four", 4, true}}};

Recomputed recomputed_of(std::string_view mode, std::int64_t layer) {
  if (mode == "fine_grained") return Recomputed::kAttention;
  for (const auto& [word, period, others] : kWholeBlocks) {
    if (mode == word && (layer % period == 0) != others) return Recomputed::kBlock;
  }
  return Recomputed::kNothing;
}

}  // namespace

std::vector<Recomputed> recomputed_blocks(const std::optional<std::string>& mode,
                                          std::int64_t n_layers) {
  std::vector<Recomputed> blocks(static_cast<std::size_t>(n_layers), Recomputed::kNothing);
  if (!mode) return blocks;
  ConfigChecks checks;
  checks.one_of("activation_checkpointing", *mode, kActivationCheckpointing);
  require_none(checks.take());
  for (std::int64_t layer = 0; layer < n_layers; ++layer)
    blocks[static_cast<std::size_t>(layer)] = recomputed_of(*mode, layer);
  return blocks;
}

std::int64_t recomputed_flops_per_token(const ModelConfig& config,
                                        const std::optional<std::string>& mode,
                                        std::int64_t length) {
  const auto blocks = recomputed_blocks(mode, config.n_layers);
  const std::int64_t d = config.d_model;
  std::int64_t flops = 0, of_last = 0;
  for (std::int64_t layer = 0; layer < config.n_layers; ++layer) {
    if (blocks[static_cast<std::size_t>(layer)] == Recomputed::kNothing) continue;
    of_last = 2 * d * config.twice_seen_keys(layer, length);  // attention
    if (*mode != "fine_grained") {
      of_last += 2 * d * (config.qkv_size() + d + config.fused_mlp_size());
      if (config.norm_after) of_last += 2 * d * config.activation_size();
    }
    flops += of_last;
  }
  return flops - of_last;
}

}  // namespace olmo::model
