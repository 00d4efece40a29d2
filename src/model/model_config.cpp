#include "model/model_config.h"

#include "model/parameter_specs.h"

namespace olmo::model {
namespace {

// Bounds that no OLMo comes near, low enough that no product of two sizes, nor a sum of all
// parameters, overflows 64 bits.
constexpr std::int64_t kMaxWidth = 1 << 20;
constexpr std::int64_t kMaxVocabulary = 1 << 24;
constexpr std::int64_t kMaxLength = 1 << 24;
constexpr std::int64_t kMaxLayers = 1 << 12;

void check_attention_shape(ConfigChecks& checks, const ModelConfig& config) {
  const bool width = checks.between("d_model", config.d_model, 1, kMaxWidth);
  const bool heads = checks.between("n_heads", config.n_heads, 1, kMaxWidth);
  if (!width || !heads) return;
  const bool divides =
      checks.expect(config.d_model % config.n_heads == 0, "n_heads",
                    "must divide `model.d_model`, got " + std::to_string(config.n_heads) + " and " +
                        std::to_string(config.d_model));
  if (divides) {
    checks.expect(
        config.head_dim() % 2 == 0, "d_model",
        "/ `model.n_heads` must be even for rope, got " + std::to_string(config.head_dim()));
  }
  if (!config.n_kv_heads || !checks.between("n_kv_heads", config.n_kv_heads, 1, config.n_heads))
    return;
  checks.expect(config.n_heads % *config.n_kv_heads == 0, "n_kv_heads",
                "must divide `model.n_heads`, got " + std::to_string(*config.n_kv_heads) + " and " +
                    std::to_string(config.n_heads));
}

void check_mlp_shape(ConfigChecks& checks, const ModelConfig& config) {
  if (config.mlp_hidden_size) {
    checks.between("mlp_hidden_size", config.mlp_hidden_size, 2, 8 * kMaxWidth);
  } else if (!checks.between("mlp_ratio", config.mlp_ratio, 1, 64) || config.d_model < 1 ||
             config.d_model > kMaxWidth) {
    return;
  }
  if (config.activation_type != "swiglu") return;
  const std::string width = config.mlp_hidden_size ? "" : "* `model.d_model` ";
  checks.expect(
      config.fused_mlp_size() % 2 == 0, config.mlp_hidden_size ? "mlp_hidden_size" : "mlp_ratio",
      width + "must be even: SwiGLU halves it, got " + std::to_string(config.fused_mlp_size()));
}

void check_vocabulary(ConfigChecks& checks, const ModelConfig& config) {
  if (!checks.between("vocab_size", config.vocab_size, 1, kMaxVocabulary)) return;
  if (config.embedding_size &&
      checks.between("embedding_size", config.embedding_size, 1, kMaxVocabulary)) {
    checks.expect(*config.embedding_size >= config.vocab_size, "embedding_size",
                  "must be at least `model.vocab_size`, got " +
                      std::to_string(*config.embedding_size) + " and " +
                      std::to_string(config.vocab_size));
  }
  checks.between("eos_token_id", config.eos_token_id, 0, config.embedding_rows() - 1);
  checks.between("pad_token_id", config.pad_token_id, 0, config.embedding_rows() - 1);
}

void check_layers(ConfigChecks& checks, const ModelConfig& config) {
  if (!checks.between("n_layers", config.n_layers, 1, kMaxLayers) ||
      !checks.between("block_group_size", config.block_group_size, 1, config.n_layers))
    return;
  checks.expect(config.n_layers % config.block_group_size == 0, "block_group_size",
                "must divide `model.n_layers`, got " + std::to_string(config.block_group_size) +
                    " and " + std::to_string(config.n_layers));
}

void check_kinds(ConfigChecks& checks, const ModelConfig& config) {
  constexpr std::array<std::string_view, 1> kOtherBlocks = {"llama"};
  constexpr std::array<std::string_view, 2> kOtherInits = {"kaiming_normal", "fan_in"};
  checks.one_of("activation_type", config.activation_type, kActivationTypes);
  checks.one_of("block_type", config.block_type, kBlockTypes, kOtherBlocks);
  checks.one_of("layer_norm_type", config.layer_norm_type, kLayerNormTypes);
  checks.one_of("init_fn", config.init_fn, kInitFns, kOtherInits);
  if (!config.rope) {
    checks.add_unsupported("rope",
                           "is false; positions are rotary here, as in every OLMo: expected true");
  }
  if (config.include_bias) {
    checks.add_unsupported(
        "include_bias",
        "is true; linear layers have no biases here, as in every OLMo: expected false");
  }
}

void check_positions(ConfigChecks& checks, const ModelConfig& config) {
  checks.positive("rope_theta", config.rope_theta);
  checks.between("sliding_window", config.sliding_window, 1, kMaxLength);
  checks.between("full_attention_every", config.full_attention_every, 1, kMaxLayers);
  if (!config.rope_scaling) return;
  const ops::RopeScaling& scaling = *config.rope_scaling;
  checks.expect(
      config.rope_theta > 1, "rope_theta",
      "must be above 1 with `model.rope_scaling`, got " + std::to_string(config.rope_theta));
  checks.at_least("rope_scaling.factor", scaling.factor, 1);
  checks.between("rope_scaling.original_max_position_embeddings",
                 scaling.original_max_position_embeddings, 1, kMaxLength);
  checks.positive("rope_scaling.beta_slow", scaling.beta_slow);
  checks.at_least("rope_scaling.beta_fast", scaling.beta_fast, scaling.beta_slow);
  checks.positive("rope_scaling.attention_factor", scaling.attention_factor);
}

}  // namespace

std::vector<ConfigProblem> problems_of(const ModelConfig& config) {
  ConfigChecks checks("model.");
  check_attention_shape(checks, config);
  check_mlp_shape(checks, config);
  check_vocabulary(checks, config);
  check_layers(checks, config);
  checks.between("max_sequence_length", config.max_sequence_length, 1, kMaxLength);
  check_kinds(checks, config);
  check_positions(checks, config);
  checks.positive("layer_norm_eps", config.layer_norm_eps);
  checks.at_least("init_std", config.init_std, 0);
  checks.positive("clip_qkv", config.clip_qkv);
  checks.positive("init_cutoff_factor", config.init_cutoff_factor);
  checks.positive("emb_init_std", config.emb_init_std);
  return checks.take();
}

std::vector<ConfigProblem> problems_of(const ModelConfig& config, MixedPrecision mixed) {
  ConfigChecks checks("model.");
  if (mixed == MixedPrecision::kNone) return {};
  if (config.scale_logits) {
    checks.add_unsupported(
        "scale_logits",
        "is true, which amp_bf16 does not support: OLMo rounds the logits twice, "
        "and here the head's input is scaled");
  }
  if (mixed == MixedPrecision::kMixed && config.norm_after && config.layer_norm_type == "default") {
    checks.add_unsupported("layer_norm_type",
                           "is `default` with `model.norm_after`, whose fp32 norms would make the "
                           "bf16 residual stream fp32 within the first block: expected `rms` or "
                           "`low_precision`, or distributed_strategy=ddp");
  }
  return checks.take();
}

void validate(const ModelConfig& config) { require_none(problems_of(config)); }

ParameterCount count_parameters(const ModelConfig& config) {
  ParameterCount count;
  for (const auto& spec : parameter_specs(config)) {
    count.total += elements(spec);
    if (spec.role != ParameterRole::kEmbedding) count.non_embedding += elements(spec);
  }
  return count;
}

std::int64_t ModelConfig::twice_seen_keys(std::int64_t layer, std::int64_t length) const {
  const std::int64_t window = has_full_attention(layer) ? length : *sliding_window;
  return window >= length ? length : 2 * window - window * window / length;
}

FlopsPerToken flops_per_token(const ModelConfig& config, std::int64_t length) {
  const ParameterCount count = count_parameters(config);
  const std::int64_t attention = config.n_layers * config.d_model * length;
  std::int64_t seen = 0;
  for (std::int64_t layer = 0; layer < config.n_layers; ++layer)
    seen += config.d_model * config.twice_seen_keys(layer, length);
  const std::int64_t head = config.embedding_rows() * config.d_model;
  const std::int64_t blocks = count.non_embedding - (config.weight_tying ? 0 : head);
  FlopsPerToken flops;
  flops.olmo_forward = 2 * count.non_embedding + 4 * attention;
  flops.olmo_backward = 4 * count.total + 8 * attention;
  flops.model_forward = 2 * blocks + 2 * seen + 2 * head;
  flops.model_backward = 2 * flops.model_forward;
  return flops;
}

}  // namespace olmo::model
