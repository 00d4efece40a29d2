#include "report/comparability/same_model.h"

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "config/other_words.h"
#include "core/files/json.h"

namespace olmo::report {
namespace {

class ModelSettings {
 public:
  explicit ModelSettings(Settings& settings) : settings_(settings) {}

  void tell_alike() {
    put_usual_words();
    tell_mlp();
    tell_kv_heads();
    tell_rows();
    tell_biases();
    tell_draw();
    tell_optimizer();
    tell_schedule();
    if (is_false("softmax_auxiliary_loss")) settings_.erase("auxiliary_loss_multiplier");
    if (is_false("model.attention_layer_norm"))
      settings_.erase("model.attention_layer_norm_with_affine");
    if (!settings_.contains("model.sliding_window")) settings_.erase("model.full_attention_every");
  }

 private:
  [[nodiscard]] bool is(const std::string& key, const std::string& value) const {
    const auto found = settings_.find(key);
    return found != settings_.end() && same_value(found->second, value);
  }
  [[nodiscard]] bool is_false(const std::string& key) const { return is(key, "false"); }

  [[nodiscard]] std::optional<std::int64_t> whole(const std::string& key) const {
    const auto found = settings_.find(key);
    if (found == settings_.end()) return std::nullopt;
    const Json value = Json::parse(found->second);
    constexpr std::int64_t kLargest = std::int64_t{1} << 31;  // products of two fit
    if (!value.is_number_integer() || value < 0 || value > kLargest) return std::nullopt;
    return value.get<std::int64_t>();
  }

  void put_usual_words() {
    for (const auto& [group, name, word, usual] : config::kOtherWords) {
      const std::string key = std::string(group) + "." + std::string(name);
      if (is(key, Json(word).dump())) settings_[key] = Json(usual).dump();
    }
  }

  void tell_mlp() {
    const auto ratio = whole("model.mlp_ratio"), d_model = whole("model.d_model");
    if (!settings_.contains("model.mlp_hidden_size") && ratio && d_model)
      settings_["model.mlp_hidden_size"] = std::to_string(*ratio * *d_model);
    if (settings_.contains("model.mlp_hidden_size")) settings_.erase("model.mlp_ratio");
  }

  void tell_kv_heads() {
    const auto heads = settings_.find("model.n_heads");
    if (heads == settings_.end()) return;
    const bool one = is_set(settings_, "model.multi_query_attention");
    settings_.emplace("model.n_kv_heads", one ? "1" : heads->second);
    settings_.erase("model.multi_query_attention");
  }

  void tell_rows() {
    const auto vocabulary = settings_.find("model.vocab_size");
    if (vocabulary != settings_.end())
      settings_.emplace("model.embedding_size", vocabulary->second);
  }

  void tell_biases() {
    const auto biases = settings_.find("model.include_bias");
    if (biases != settings_.end()) settings_.emplace("model.bias_for_layer_norm", biases->second);
    const bool no_weights = is_false("model.layer_norm_with_affine") &&
                            (is_false("model.attention_layer_norm") ||
                             is_false("model.attention_layer_norm_with_affine"));
    if (no_weights) settings_.erase("model.bias_for_layer_norm");
  }

  /// Of the initial weights.
  void tell_draw() {
    if (!settings_.contains("model.init_fn") || is("model.init_fn", R"("normal")")) return;
    settings_.emplace("model.init_cutoff_factor", "3.0");
    if (is("model.init_fn", R"("mitchell")")) settings_.erase("model.init_std");
  }

  void tell_optimizer() {
    if (is("optimizer.name", R"("lionw")")) settings_.erase("optimizer.eps");
    const std::string old_name = "optimizer.no_decay_norm_and_bias";
    if (!settings_.contains(old_name)) return;
    const std::string decays = is_set(settings_, old_name) ? "false" : "true";
    settings_["optimizer.decay_norm_and_bias"] = settings_["optimizer.decay_embeddings"] = decays;
    settings_.erase(old_name);
  }

  /// A new warm-up reads the length of the old one, and a limit that warms up the units.
  void tell_schedule() {
    const bool is_constant = is("scheduler.name", R"("constant")");
    if (!is_constant && !is("scheduler.name", R"("constant_with_warmup")") &&
        !is("scheduler.name", R"("inverse_sqrt_with_warmup")"))
      return;
    for (const char* key : {"scheduler.alpha_f", "scheduler.t_max"}) settings_.erase(key);
    if (!is_constant) return;
    settings_.erase("scheduler.warmup_min_lr");
    if (!is_set(settings_, "reset_optimizer_state")) settings_.erase("scheduler.t_warmup");
    if (!settings_.contains("scheduler.grad_clip_warmup_steps")) settings_.erase("scheduler.units");
  }

  Settings& settings_;
};

}  // namespace

void tell_model_alike(Settings& settings) { ModelSettings(settings).tell_alike(); }

}  // namespace olmo::report
