#include "model/model_size.h"

#include "model/parameters.h"

namespace olmo::model {
namespace {

/// Logits that ops/cross_entropy holds at once: a chunk of tokens.
std::int64_t head_logits(std::int64_t tokens, std::int64_t vocabulary) {
  constexpr std::int64_t kLogits = 16 << 20, kUnit = 64;
  const std::int64_t chunk = std::max(kUnit, kLogits / vocabulary / kUnit * kUnit);
  return std::min(tokens, chunk) * vocabulary;
}

std::int64_t elements(const ParameterSpec& spec) {
  std::int64_t count = 1;
  for (const std::int64_t extent : spec.shape) count *= extent;
  return count;
}

/// Floats per token that one block keeps (BlockSaved).
std::int64_t saved_per_token(const ModelConfig& config) {
  const std::int64_t d = config.d_model, kv = config.kv_heads() * config.head_dim();
  std::int64_t floats = 3 * d + config.qkv_size() + config.fused_mlp_size() +
                        config.n_heads;  // x, heads, mid, qkv, u, lse
  if (config.attention_layer_norm) floats += d + kv;
  if (config.norm_after) floats += 2 * d;
  if (config.clip_qkv) floats += config.qkv_size() / 4;  // one byte each
  return floats;
}

}  // namespace

ParameterCount count_parameters(const ModelConfig& config) {
  ParameterCount count;
  for (const auto& spec : parameter_specs(config)) {
    count.total += elements(spec);
    if (spec.role != ParameterRole::kEmbedding) count.non_embedding += elements(spec);
  }
  return count;
}

FlopsPerToken flops_per_token(const ModelConfig& config, std::int64_t length) {
  const ParameterCount count = count_parameters(config);
  const std::int64_t attention = config.n_layers * config.d_model * length;
  const std::int64_t head = config.embedding_rows() * config.d_model;
  const std::int64_t blocks = count.non_embedding - (config.weight_tying ? 0 : head);
  FlopsPerToken flops;
  flops.olmo_forward = 2 * count.non_embedding + 4 * attention;
  flops.olmo_backward = 4 * count.total + 8 * attention;
  flops.model_forward = 2 * blocks + 2 * attention + 2 * head;
  flops.model_backward = 2 * flops.model_forward;
  return flops;
}

MemoryEstimate estimate_memory(const ModelConfig& config, const MemoryQuery& query) {
  constexpr std::int64_t kFloat = 4;
  const std::int64_t tokens = query.batch * query.length, d = config.d_model;
  MemoryEstimate bytes;
  bytes.weights = kFloat * count_parameters(config).total;
  bytes.gradients = query.gradient_sets * bytes.weights;
  bytes.moments = query.moments * bytes.weights;
  bytes.saved_activations = kFloat * tokens * config.n_layers * saved_per_token(config);
  bytes.scratch = kFloat * tokens * (6 * d + config.fused_mlp_size() + config.qkv_size());
  bytes.head = kFloat * head_logits(tokens, config.embedding_rows());
  return bytes;
}

}  // namespace olmo::model
