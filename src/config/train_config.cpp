#include "config/train_config.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "config/fields.h"
#include "config/foreign.h"

namespace olmo::config {
namespace {

// Far beyond any run, and low enough that products of three of these stay below 2^63.
constexpr std::int64_t kMaxBatch = 1 << 24;
constexpr std::int64_t kMaxInterval = std::int64_t{1} << 40;

/// Collects problems; each check names a key and what would be right.
class Checks {
 public:
  void fail(std::string key, std::string message) {
    problems_.push_back({std::move(key), std::move(message)});
  }

  void at_least(const char* key, double value, double low) {
    if (!(std::isfinite(value) && value >= low))
      fail(key, "must be at least " + number(low) + ", got " + number(value));
  }
  void positive(const char* key, double value) {
    if (!(std::isfinite(value) && value > 0)) fail(key, "must be above 0, got " + number(value));
  }
  void between(const char* key, std::int64_t value, std::int64_t low, std::int64_t high) {
    if (value >= low && value <= high) return;
    fail(key, "must lie in " + std::to_string(low) + ".." + std::to_string(high) + ", got " +
                  std::to_string(value));
  }
  void between(const char* key, const std::optional<std::int64_t>& value, std::int64_t low,
               std::int64_t high) {
    if (value) between(key, *value, low, high);
  }
  void one_of(const char* key, const std::string& value, const std::vector<std::string>& known) {
    if (std::find(known.begin(), known.end(), value) != known.end()) return;
    std::string list;
    for (const auto& word : known) list += (list.empty() ? "" : ", ") + word;
    fail(key, "is `" + value.substr(0, 60) + "`, expected one of " + list);
  }
  static std::string number(double value) { return Json(value).dump(); }

  std::vector<ConfigProblem> problems_;
};

/// Words that OLMo's enums have; which of them can be run is said by unsupported().
void check_model(Checks& checks, const model::ModelConfig& model) {
  checks.one_of("model.activation_type", model.activation_type, {"swiglu", "gelu", "relu"});
  checks.one_of("model.block_type", model.block_type, {"sequential", "llama"});
  checks.one_of("model.layer_norm_type", model.layer_norm_type,
                {"default", "low_precision", "rms"});
  checks.one_of("model.init_fn", model.init_fn,
                {"mitchell", "normal", "full_megatron", "kaiming_normal", "fan_in"});
  // The model's own sentences name their key first; kinds that it lacks were judged above.
  static const std::vector<std::string> kKinds = {
      "model.activation_type", "model.block_type", "model.layer_norm_type",
      "model.init_fn",         "model.rope",       "model.include_bias"};
  for (const auto& sentence : model::config_errors(model)) {
    const auto end = sentence.find('`', 1);
    const auto key = sentence.substr(1, end - 1);
    if (std::find(kKinds.begin(), kKinds.end(), key) != kKinds.end()) continue;
    checks.fail(key, sentence.substr(std::min(end + 2, sentence.size())));
  }
  if (model.max_sequence_length < 2) {
    checks.fail("model.max_sequence_length",
                "must be above 1: the last token of a sequence has no label, got " +
                    std::to_string(model.max_sequence_length));
  }
}

void check_optimizer(Checks& checks, const optim::OptimizerConfig& optimizer) {
  checks.one_of("optimizer.name", optimizer.name, {"adamw", "lionw"});
  checks.positive("optimizer.learning_rate", optimizer.learning_rate);
  checks.at_least("optimizer.weight_decay", optimizer.weight_decay, 0);
  checks.at_least("optimizer.eps", optimizer.eps, 0);
  for (const double beta : optimizer.betas) {
    if (!(beta >= 0 && beta < 1)) {
      checks.fail("optimizer.betas", "must lie in [0, 1), got " + Checks::number(beta));
    }
  }
}

void check_scheduler(Checks& checks, const TrainConfig& config) {
  const auto& scheduler = config.scheduler;
  checks.one_of("scheduler.name", scheduler.name,
                {"cosine_with_warmup", "linear_with_warmup", "inverse_sqrt_with_warmup",
                 "max_scheduler", "constant", "cosine_linear_envelope", "constant_with_warmup"});
  checks.one_of("scheduler.units", scheduler.units, {"steps", "tokens"});
  const auto whole = [&](const char* key, double value) {
    checks.at_least(key, value, 0);
    if (std::isfinite(value) && value != std::floor(value)) {
      checks.fail(
          key, "must be a whole number of " + scheduler.units + ", got " + Checks::number(value));
    }
  };
  whole("scheduler.t_warmup", scheduler.t_warmup);
  if (scheduler.t_max) {
    whole("scheduler.t_max", *scheduler.t_max);
    if (*scheduler.t_max <= scheduler.t_warmup) {
      checks.fail("scheduler.t_max", "must be above `scheduler.t_warmup`, got " +
                                         Checks::number(*scheduler.t_max) + " and " +
                                         Checks::number(scheduler.t_warmup));
    }
  }
  checks.at_least("scheduler.alpha_f", scheduler.alpha_f, 0);
  if (scheduler.grad_clip_warmup_steps)
    whole("scheduler.grad_clip_warmup_steps", *scheduler.grad_clip_warmup_steps);
  if (scheduler.grad_clip_warmup_factor) {
    checks.positive("scheduler.grad_clip_warmup_factor", *scheduler.grad_clip_warmup_factor);
  }
  if (!scheduler.warmup_min_lr) return;
  const double start = *scheduler.warmup_min_lr;
  if (!(start >= 0 && start < config.optimizer.learning_rate)) {
    checks.fail("scheduler.warmup_min_lr",
                "must lie in [0, `optimizer.learning_rate`), got " + Checks::number(start));
  }
}

void check_data(Checks& checks, const TrainConfig& config) {
  const auto& data = config.data;
  checks.one_of("data.memmap_dtype", data.memmap_dtype, {"uint16", "uint32"});
  if (data.memmap_dtype == "uint16" && config.model.vocab_size > 65536) {
    checks.fail("data.memmap_dtype", "is uint16, which cannot hold the ids of `model.vocab_size` " +
                                         std::to_string(config.model.vocab_size) +
                                         ": expected uint32");
  }
  if (!data.paths.empty() && !data.datasets.empty()) {
    checks.fail("data.paths", "and `data.datasets` exclude each other, got both");
  }
  std::size_t files = data.paths.size();
  for (const auto& [label, paths] : data.datasets) files += paths.size();
  if (!data.label_mask_paths.empty() && data.label_mask_paths.size() != files) {
    checks.fail("data.label_mask_paths", "must name one file for each of the " +
                                             std::to_string(files) + " token files, got " +
                                             std::to_string(data.label_mask_paths.size()));
  }
  if (!data.instance_filter) return;
  const auto& filter = *data.instance_filter;
  checks.between("data.instance_filter.repetition_min_period", filter.repetition_min_period, 1,
                 kMaxBatch);
  checks.between("data.instance_filter.repetition_max_period", filter.repetition_max_period,
                 std::max<std::int64_t>(filter.repetition_min_period, 1), kMaxBatch);
  checks.between("data.instance_filter.repetition_max_count", filter.repetition_max_count, 1,
                 kMaxBatch);
}

void check_batch(Checks& checks, const TrainConfig& config) {
  checks.between("global_train_batch_size", config.global_train_batch_size, 1, kMaxBatch);
  checks.between("device_train_microbatch_size", config.device_train_microbatch_size, 1, kMaxBatch);
  checks.between("device_eval_batch_size", config.device_eval_batch_size, 1, kMaxBatch);
  const auto global = config.global_train_batch_size;
  const auto micro = config.device_train_microbatch_size;
  if (micro >= 1 && micro < global && global % micro != 0) {
    checks.fail("device_train_microbatch_size", "must divide `global_train_batch_size`, got " +
                                                    std::to_string(micro) + " and " +
                                                    std::to_string(global));
  }
}

/// Sizes whose products would not fit into 64 bits are mistakes, and are told before anything
/// multiplies them.
void check_products(Checks& checks, const TrainConfig& config) {
  const auto& model = config.model;
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double micro =
      real(std::min(config.device_train_microbatch_size, config.global_train_batch_size)) *
      real(model.max_sequence_length);
  const double width = 16 * real(model.d_model) + 2 * (real(model.mlp_ratio) * real(model.d_model) +
                                                       real(model.mlp_hidden_size.value_or(0)));
  if (!(micro * width * real(model.n_layers) < 0x1p56)) {
    checks.fail("device_train_microbatch_size",
                "times the model's size is beyond any memory, got " +
                    std::to_string(config.device_train_microbatch_size));
  }
  const bool steps = config.max_duration.unit == optim::Duration::Unit::kSteps;
  const double tokens =
      real(config.max_duration.value) *
      (steps ? real(config.global_train_batch_size) * real(model.max_sequence_length) : 1);
  const bool epochs = config.max_duration.unit == optim::Duration::Unit::kEpochs;
  if (!(tokens < (epochs ? 0x1p20 : 0x1p62))) {
    checks.fail("max_duration",
                "is beyond any run, got " + std::to_string(config.max_duration.value));
  }
}

void check_loop(Checks& checks, const TrainConfig& config) {
  checks.between("epoch", config.epoch, 0, kMaxInterval);
  checks.between("stop_at", config.stop_at, 1, kMaxInterval);
  checks.between("stop_after", config.stop_after, 1, kMaxInterval);
  checks.between("extra_steps_after_cancel", config.extra_steps_after_cancel, 0, kMaxInterval);
  checks.between("fast_forward_batches", config.fast_forward_batches, 0, kMaxInterval);
  checks.one_of("precision", config.precision, {"fp32", "amp_bf16", "amp_fp16"});
  if (config.max_grad_norm) checks.positive("max_grad_norm", *config.max_grad_norm);
  if (config.max_grad_norm_ratio)
    checks.positive("max_grad_norm_ratio", *config.max_grad_norm_ratio);
  if (config.time_limit) checks.at_least("time_limit", *config.time_limit, 0);
  if (config.early_stopping_factor)
    checks.positive("early_stopping_factor", *config.early_stopping_factor);
  if (config.auxiliary_loss_multiplier) {
    checks.at_least("auxiliary_loss_multiplier", *config.auxiliary_loss_multiplier, 0);
  } else if (config.softmax_auxiliary_loss) {
    checks.fail("auxiliary_loss_multiplier",
                "must be a number if `softmax_auxiliary_loss` is set, got null");
  }
  if (config.load_path && config.load_weights) {
    checks.fail("load_weights", "and `load_path` exclude each other, got both");
  }
}

void check_saving(Checks& checks, const TrainConfig& config) {
  checks.between("save_interval", config.save_interval, 1, kMaxInterval);
  checks.between("save_interval_unsharded", config.save_interval_unsharded, 1, kMaxInterval);
  checks.between("save_interval_ephemeral", config.save_interval_ephemeral, 1, kMaxInterval);
  checks.between("save_num_checkpoints_to_keep", config.save_num_checkpoints_to_keep, -1,
                 kMaxInterval);
  checks.between("save_num_unsharded_checkpoints_to_keep",
                 config.save_num_unsharded_checkpoints_to_keep, -1, kMaxInterval);
  checks.between("save_failures_allowed", config.save_failures_allowed, 0, kMaxInterval);
  checks.between("eval_interval", config.eval_interval, 1, kMaxInterval);
  checks.between("eval_subset_num_batches", config.eval_subset_num_batches, -1, kMaxInterval);
  checks.between("hash_interval", config.hash_interval, 0, kMaxInterval);
  checks.between("trace_interval", config.trace_interval, 0, kMaxInterval);
  checks.between("threads", config.threads, 0, 4096);
  checks.one_of("numerics", config.numerics, {"portable", "fast"});
  checks.one_of("isa", config.isa, {"auto", "plain", "avx2", "avx512"});
  checks.one_of("device", config.device, {"cpu", "cuda", "rocm"});
  checks.one_of("tokenizer.truncate_direction", config.tokenizer.truncate_direction,
                {"left", "right"});
  if (config.save_folder.empty())
    checks.fail("save_folder", "must name a folder, got an empty text");
}

/// Writes a struct as a JSON object: the visitor of visit_fields.
class Writer {
 public:
  template <class T>
  void operator()(const char* name, const T& value) {
    object_[name] = write(value);
  }
  Json take() { return std::move(object_); }

 private:
  template <class T>
  static Json write(const T& value) {
    if constexpr (requires(Writer & writer) { visit_fields(value, writer); }) {
      Writer writer;
      visit_fields(value, writer);
      return writer.take();
    } else {
      return Json(value);
    }
  }
  static Json write(const std::string& value) { return escaped(value); }
  static Json write(const optim::Duration& value) {
    if (value.unit == optim::Duration::Unit::kSteps) return value.value;
    return std::to_string(value.value) +
           (value.unit == optim::Duration::Unit::kTokens ? "T" : "ep");
  }
  static Json write(const RawJson& value) { return escape_all(Json::parse(value.text)); }
  template <class T>
  static Json write(const std::optional<T>& value) {
    return value ? write(*value) : Json(nullptr);
  }
  static Json write(const std::vector<std::string>& values) {
    Json list = Json::array();
    for (const auto& value : values) list.push_back(escaped(value));
    return list;
  }
  static Json write(const std::map<std::string, std::vector<std::string>>& values) {
    Json map = Json::object();
    for (const auto& [label, paths] : values) map[label] = write(paths);
    return map;
  }

  /// A resolved text that looks like a reference must not become one when the config is fed back.
  static std::string escaped(const std::string& text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text.compare(i, 2, "${") == 0) out.push_back('\\');
      out.push_back(text[i]);
    }
    return out;
  }
  static Json escape_all(Json json) {
    if (json.is_string()) return escaped(json.get<std::string>());
    if (json.is_structured()) {
      for (auto& child : json) child = escape_all(child);
    }
    return json;
  }

  Json object_ = Json::object();
};

}  // namespace

std::vector<ConfigProblem> validate(const TrainConfig& config) {
  Checks checks;
  check_model(checks, config.model);
  check_optimizer(checks, config.optimizer);
  check_scheduler(checks, config);
  check_data(checks, config);
  check_batch(checks, config);
  check_products(checks, config);
  check_loop(checks, config);
  check_saving(checks, config);
  return std::move(checks.problems_);
}

Json to_json(const TrainConfig& config) {
  Writer writer;
  visit_fields(config, writer);
  return writer.take();
}

Digest experiment_digest(const TrainConfig& config) {
  Json json = to_json(config);
  for (const auto* key : {"run_name",
                          "dry_run",
                          "stop_at",
                          "stop_after",
                          "time_limit",
                          "extra_steps_after_cancel",
                          "early_stopping_factor",
                          "save_folder",
                          "save_interval",
                          "save_interval_unsharded",
                          "save_interval_ephemeral",
                          "save_num_checkpoints_to_keep",
                          "save_num_unsharded_checkpoints_to_keep",
                          "save_overwrite",
                          "save_failures_allowed",
                          "no_pre_train_checkpoint",
                          "load_path",
                          "try_load_latest_save",
                          "load_weights",
                          "eval_interval",
                          "eval_on_load",
                          "eval_subset_num_batches",
                          "device_eval_batch_size",
                          "evaluators",
                          "numerics",
                          "isa",
                          "device",
                          "threads",
                          "hash_interval",
                          "trace_interval",
                          "allow_eos_mismatch",
                          "tokenizer"}) {
    json.erase(key);
  }
  for (const auto* key : {"paths", "datasets", "label_mask_paths"}) json["data"].erase(key);
  return sha256(json.dump());
}

}  // namespace olmo::config
