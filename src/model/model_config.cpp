#include "model/model_config.h"

#include <cmath>
#include <string_view>

#include "core/error.h"

namespace olmo::model {
namespace {

// Bounds that no OLMo comes near, low enough that no product of two sizes, nor a sum of all
// parameters, overflows 64 bits.
constexpr std::int64_t kMaxWidth = 1 << 20;
constexpr std::int64_t kMaxVocabulary = 1 << 24;
constexpr std::int64_t kMaxLength = 1 << 24;
constexpr std::int64_t kMaxLayers = 1 << 12;

class Checks {
 public:
  /// False and a sentence unless `holds`.
  bool expect(bool holds, const std::string& sentence) {
    if (!holds) errors_.push_back(sentence);
    return holds;
  }
  bool expect_between(std::string_view key, std::int64_t value, std::int64_t low,
                      std::int64_t high) {
    return expect(value >= low && value <= high,
                  "`model." + std::string(key) + "` must lie in " + std::to_string(low) + ".." +
                      std::to_string(high) + ", got " + std::to_string(value));
  }
  bool expect_positive(std::string_view key, double value) {
    return expect(
        std::isfinite(value) && value > 0.0,
        "`model." + std::string(key) + "` must be a positive number, got " + std::to_string(value));
  }
  std::vector<std::string> take() { return std::move(errors_); }

 private:
  std::vector<std::string> errors_;
};

void check_attention_shape(Checks& checks, const ModelConfig& config) {
  const bool widths = checks.expect_between("d_model", config.d_model, 1, kMaxWidth) &
                      checks.expect_between("n_heads", config.n_heads, 1, kMaxWidth);
  if (!widths) return;
  const bool divides =
      checks.expect(config.d_model % config.n_heads == 0,
                    "`model.n_heads` must divide `model.d_model`, got " +
                        std::to_string(config.n_heads) + " and " + std::to_string(config.d_model));
  if (divides) {
    checks.expect(config.head_dim() % 2 == 0,
                  "`model.d_model` / `model.n_heads` must be even for rope, got " +
                      std::to_string(config.head_dim()));
  }
  if (!config.n_kv_heads ||
      !checks.expect_between("n_kv_heads", *config.n_kv_heads, 1, config.n_heads))
    return;
  checks.expect(config.n_heads % *config.n_kv_heads == 0,
                "`model.n_kv_heads` must divide `model.n_heads`, got " +
                    std::to_string(*config.n_kv_heads) + " and " + std::to_string(config.n_heads));
}

void check_mlp_shape(Checks& checks, const ModelConfig& config) {
  if (config.mlp_hidden_size) {
    checks.expect_between("mlp_hidden_size", *config.mlp_hidden_size, 2, 8 * kMaxWidth);
  } else if (!checks.expect_between("mlp_ratio", config.mlp_ratio, 1, 64) || config.d_model < 1 ||
             config.d_model > kMaxWidth) {
    return;
  }
  const char* key =
      config.mlp_hidden_size ? "`model.mlp_hidden_size`" : "`model.mlp_ratio` * `model.d_model`";
  checks.expect(config.fused_mlp_size() % 2 == 0, std::string(key) +
                                                      " must be even: SwiGLU halves it, got " +
                                                      std::to_string(config.fused_mlp_size()));
}

void check_vocabulary(Checks& checks, const ModelConfig& config) {
  if (!checks.expect_between("vocab_size", config.vocab_size, 1, kMaxVocabulary)) return;
  if (config.embedding_size &&
      checks.expect_between("embedding_size", *config.embedding_size, 1, kMaxVocabulary)) {
    checks.expect(*config.embedding_size >= config.vocab_size,
                  "`model.embedding_size` must be at least `model.vocab_size`, got " +
                      std::to_string(*config.embedding_size) + " and " +
                      std::to_string(config.vocab_size));
  }
  checks.expect_between("eos_token_id", config.eos_token_id, 0, config.embedding_rows() - 1);
  checks.expect_between("pad_token_id", config.pad_token_id, 0, config.embedding_rows() - 1);
}

void check_kinds(Checks& checks, const ModelConfig& config) {
  const auto only = [&](std::string_view key, const std::string& value,
                        std::initializer_list<std::string_view> known) {
    std::string list;
    for (const auto word : known) {
      if (value == word) return;
      list += (list.empty() ? "" : ", ") + std::string(word);
    }
    checks.expect(false,
                  "`model." + std::string(key) + "` is '" + value + "'; olmo-harness has: " + list);
  };
  only("activation_type", config.activation_type, {"swiglu"});
  only("block_type", config.block_type, {"sequential"});
  only("layer_norm_type", config.layer_norm_type, {"default", "low_precision", "rms"});
  only("init_fn", config.init_fn, {"mitchell", "normal", "full_megatron"});
  checks.expect(
      config.rope,
      "`model.rope` is false; olmo-harness has rotary position embeddings only, as every OLMo");
  checks.expect(!config.include_bias,
                "`model.include_bias` is true; olmo-harness has linear layers without biases only, "
                "as every OLMo");
}

}  // namespace

std::vector<std::string> config_errors(const ModelConfig& config) {
  Checks checks;
  check_attention_shape(checks, config);
  check_mlp_shape(checks, config);
  check_vocabulary(checks, config);
  checks.expect_between("n_layers", config.n_layers, 1, kMaxLayers);
  checks.expect_between("max_sequence_length", config.max_sequence_length, 1, kMaxLength);
  check_kinds(checks, config);
  checks.expect_positive("rope_theta", config.rope_theta);
  checks.expect_positive("layer_norm_eps", config.layer_norm_eps);
  checks.expect(std::isfinite(config.init_std) && config.init_std >= 0.0,
                "`model.init_std` must be >= 0, got " + std::to_string(config.init_std));
  if (config.clip_qkv) checks.expect_positive("clip_qkv", *config.clip_qkv);
  if (config.init_cutoff_factor)
    checks.expect_positive("init_cutoff_factor", *config.init_cutoff_factor);
  if (config.emb_init_std) checks.expect_positive("emb_init_std", *config.emb_init_std);
  return checks.take();
}

void validate(const ModelConfig& config) {
  const auto errors = config_errors(config);
  if (errors.empty()) return;
  std::string message;
  for (const auto& error : errors) message += (message.empty() ? "" : "; ") + error;
  throw Error(ErrorKind::kUsage, message);
}

}  // namespace olmo::model
