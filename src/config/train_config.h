#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/compute/policy.h"
#include "core/files/json.h"
#include "core/hash.h"
#include "data/dataset.h"
#include "model/model_config.h"
#include "optim/lr_schedule.h"
#include "optim/optim_config.h"

namespace olmo::config {

inline constexpr std::array<std::string_view, 2> kNumerics = {"portable", "fast"};
inline constexpr std::array<std::string_view, 4> kIsas = {"auto", "plain", "avx2", "avx512"};
inline constexpr std::array<std::string_view, 3> kDevices = {"cpu", "cuda", "rocm"};

/// OLMo's TokenizerConfig.
struct TokenizerConfig {
  std::string identifier = "gpt2";  ///< a tokenizer.json, or the name of a fetched one
};

inline constexpr std::array<std::string_view, 3> kDistributedStrategies = {"fsdp", "ddp", "single"};
inline constexpr std::array<std::string_view, 2> kFsdpPrecisions = {"mixed", "pure"};

/// What each rank holds: torch's names (torch.distributed.fsdp.ShardingStrategy).
inline constexpr std::array<std::string_view, 5> kShardingStrategies = {
    "FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2"};

/// OLMo's FSDPConfig. Only `precision` decides bits.
struct FsdpConfig {
  std::string sharding_strategy = "FULL_SHARD";
  /// See model/units.h; null: the whole model is one unit. That is OLMo's default; ours needs less
  /// memory for the same bits.
  std::optional<std::string> wrapping_strategy = "by_block";
  std::optional<std::string> precision = "mixed";  ///< null: parameters stay fp32; OLMo's: pure
  /// Of the hybrid strategies; null: one a node.
  std::optional<std::int64_t> hybrid_sharding_num_model_replicas;
};

/// A part of a config that is kept as it was written, as canonical JSON text.
struct RawJson {
  std::string text = "[]";
};

/// OLMo's EvaluatorConfig (olmo/config.py).
struct EvaluatorConfig {
  std::string label;
  std::string type = "lm";  ///< downstream: `label` names a task; lm: `data` has token files
  data::DataConfig data;
  std::optional<std::int64_t> device_eval_batch_size;  ///< null or 0: the run's
  std::optional<std::int64_t> subset_num_batches;      ///< null: eval_subset_num_batches
};

inline constexpr std::array<std::string_view, 2> kEvaluatorTypes = {"downstream", "lm"};

/// Everything that decides a run, under the names and with the defaults of OLMo's TrainConfig
/// (olmo/config.py); the last group is ours. Intervals are optimizer steps.
struct TrainConfig {
  std::optional<std::string> run_name;
  std::uint64_t seed = 6198;
  std::optional<std::int64_t> epoch;  ///< first epoch, counted from 0
  bool dry_run = false;

  model::ModelConfig model;
  optim::OptimizerConfig optimizer;
  optim::SchedulerConfig scheduler;
  data::DataConfig data;
  TokenizerConfig tokenizer;

  optim::Duration max_duration;
  std::optional<std::int64_t> stop_at;     ///< last step
  std::optional<std::int64_t> stop_after;  ///< steps of this process
  std::int64_t global_train_batch_size = 512;
  std::int64_t device_train_microbatch_size = 16;
  Precision precision = Precision::kFp32;  ///< OLMo has no default here
  /// How ranks share the work; of any number of them. Null: as single.
  std::optional<std::string> distributed_strategy = "fsdp";
  std::optional<FsdpConfig> fsdp = FsdpConfig{};
  std::optional<double> max_grad_norm;
  std::optional<double> max_grad_norm_ratio;  ///< wins over max_grad_norm
  bool softmax_auxiliary_loss = false;        ///< add the z-loss to the loss
  std::optional<double> auxiliary_loss_multiplier = 1e-4;
  /// OLMo's, which adds the z-loss without softmax_auxiliary_loss, too; null: as false.
  std::optional<bool> fused_loss = false;
  std::optional<double> time_limit;  ///< seconds
  std::optional<double> early_stopping_factor;

  std::string save_folder = "./";
  std::optional<std::int64_t> save_interval = 1000;
  std::optional<std::int64_t> save_interval_unsharded;
  std::optional<std::int64_t> save_interval_ephemeral;  ///< of these only the latest is kept
  std::int64_t save_num_checkpoints_to_keep = -1;       ///< -1 keeps all
  std::int64_t save_num_unsharded_checkpoints_to_keep = -1;
  bool save_overwrite = false;
  std::int64_t save_failures_allowed = 3;  ///< ours: in a row, before training ends; 0: none
  bool no_pre_train_checkpoint = false;
  std::optional<std::string> load_path;
  bool try_load_latest_save = false;
  bool reset_optimizer_state = false;
  bool reset_trainer_state = false;
  bool restore_dataloader = true;
  std::optional<std::int64_t> fast_forward_batches;

  std::int64_t eval_interval = 1000;
  bool eval_on_load = false;
  std::int64_t eval_subset_num_batches = -1;
  std::int64_t device_eval_batch_size = 16;
  RawJson evaluators;  ///< OLMo's list of EvaluatorConfig: see evaluators_of

  std::optional<std::string> activation_checkpointing;  ///< see model/recomputation.h; null: none

  std::optional<std::string> load_weights;  ///< start from these weights: any CHECKPOINT
  std::string numerics = "portable";        ///< portable | fast
  std::string isa = "auto";                 ///< auto | plain | avx2 | avx512
  std::string device = "cpu";               ///< cpu | cuda | rocm
  std::int64_t threads = 0;                 ///< 0: every core that the process may use
  std::int64_t hash_interval = 100;         ///< steps between hashes of the whole state; 0 never
  std::int64_t trace_interval =
      1000;  ///< steps between hashes of every operation's output; 0 never, not even of step 1
  bool allow_eos_mismatch =
      false;  ///< train although the tokenizer disagrees with model.eos_token_id

  [[nodiscard]] optim::ClipLimits clip_limits() const {
    return {max_grad_norm, max_grad_norm_ratio};
  }
  [[nodiscard]] std::int64_t tokens_per_step() const {
    return global_train_batch_size * model.max_sequence_length;
  }
  /// Sequences of a micro-batch. The last one of a step has what is left, as OLMo's
  /// `Trainer.split_batch` gives it (olmo/train.py).
  [[nodiscard]] std::int64_t micro_batch() const {
    return std::min(device_train_microbatch_size, global_train_batch_size);
  }
  /// Micro-batches of a step.
  [[nodiscard]] std::int64_t micro_batches() const {
    return (global_train_batch_size + micro_batch() - 1) / micro_batch();
  }
  /// Whether fsdp.precision means anything.
  [[nodiscard]] bool rounds_under_fsdp() const {
    return precision == Precision::kAmpBf16 && distributed_strategy == "fsdp";
  }
  /// The computation that `precision`, `distributed_strategy` and `fsdp.precision` stand for, on
  /// one process as on a thousand: FSDP that casts its parameters is `mixed`, all else `autocast`.
  [[nodiscard]] MixedPrecision mixed_precision() const {
    if (precision != Precision::kAmpBf16) return MixedPrecision::kNone;
    return rounds_under_fsdp() && fsdp && fsdp->precision ? MixedPrecision::kMixed
                                                          : MixedPrecision::kAutocast;
  }
  /// Weight of the squared log-sum-exp in the loss: 0 without the z-loss.
  [[nodiscard]] double z_multiplier() const {
    return softmax_auxiliary_loss ? auxiliary_loss_multiplier.value_or(0.0) : 0.0;
  }
};

/// Everything that is wrong: what the rooms find in their parts, and what concerns several. Empty
/// if all is well.
std::vector<ConfigProblem> validate(const TrainConfig& config);

/// What is wrong with the evaluators of a config. Token files that are not on this machine are not:
/// such an evaluator is left out.
std::vector<ConfigProblem> problems_of(const std::vector<EvaluatorConfig>& evaluators,
                                       const model::ModelConfig& model);

/// The evaluators of a config. Throws Error(kUsage) as load_config for a list that is wrong.
std::vector<EvaluatorConfig> evaluators_of(const TrainConfig& config);

/// What of a config decides which tokens a step sees: training and `data inspect` both ask here.
data::BatchConfig batch_config(const TrainConfig& config);

/// The resolved config: every key with its value, `${…}` replaced. Fed back as a config it gives
/// the same config; floats keep their bits.
Json to_json(const TrainConfig& config);

/// SHA-256 of the keys that decide what is computed (Effect::kIdentity and kRefused in the table of
/// keys, config/keys.h) and of mixed_precision(): equal for two runs that must agree step by step.
/// Paths are left out (data files are compared by their own digests), and so are the policy
/// (numerics, isa, device, threads) and what only decides what is kept or when a process ends.
Digest experiment_digest(const TrainConfig& config);

/// Whether the config in a record is that of the recorded digest; nothing: it is none that this
/// program can read.
std::optional<bool> has_digest(const std::string& recorded, const std::string& digest);

/// A config as it was read, with what the reader must tell the user.
struct LoadedConfig {
  TrainConfig config;
  std::vector<std::string>
      notes;  ///< keys of OLMo that are accepted and not honoured: none changes the result
  std::vector<std::string>
      blockers;  ///< what would change the result and is not supported: a run must not start
};

/// Reads FILE (`.yaml`/`.yml`: OLMo's YAML; else JSON with comments), then applies `overrides`
/// ("key.path=value", with or without leading "--"). Throws Error(kUsage) with one line for each
/// error: "FILE:LINE: `key` …".
LoadedConfig load_config(const std::filesystem::path& file,
                         const std::vector<std::string>& overrides = {});

/// As load_config, for a config held as text, e.g. the resolved one of a recorded run; `name`
/// stands for the file, and says by its suffix how the text is read.
LoadedConfig parse_config(const std::string& text, const std::string& name,
                          const std::vector<std::string>& overrides = {});

/// Throws Error(kUsage) naming every blocker, unless there is none.
void require_no_blockers(const LoadedConfig& loaded);

}  // namespace olmo::config
