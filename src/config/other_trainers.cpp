#include "config/other_trainers.h"

#include <algorithm>
#include <array>
#include <span>

#include "config/keys.h"

namespace olmo::config {
namespace {

/// A key or a group of keys, or with a `*` at its end all that begin so. The first that names a
/// path counts.
struct Row {
  std::string_view name;
  KeyRule rule;
};

bool names(const Row& row, std::string_view path) {
  if (row.name.ends_with('*')) return path.starts_with(row.name.substr(0, row.name.size() - 1));
  return path.starts_with(row.name) &&
         (path.size() == row.name.size() || path[row.name.size()] == '.');
}

// transformers/training_args.py. Left to the usual rule are batches, the schedule, precision, and
// whatever another trainer may have under the same name (temperature, max_length).
constexpr std::array kTransformersRows = {
    Row{"seed", kSeed},
    Row{"data_seed", kSeed},
    Row{"initializer_range", kDrawn},
    Row{"id2label", kNoEffect},
    Row{"label2id", kNoEffect},
    Row{"is_encoder_decoder", kNoEffect},
    Row{"chunk_size_feed_forward", kNoEffect},
    Row{"return_dict", kNoEffect},
    Row{"output_attentions", kNoEffect},
    Row{"output_hidden_states", kNoEffect},
    Row{"model/num_parameters", kNoEffect},
    Row{"output_dir", kPlace},
    Row{"overwrite_output_dir", kPlace},
    Row{"run_name", kPlace},
    Row{"project", kPlace},
    Row{"trackio_*", kPlace},
    Row{"hub_*", kPlace},
    Row{"push_to_hub*", kPlace},
    Row{"log_level*", kKept},
    Row{"log_on_each_node", kKept},
    Row{"logging_*", kKept},
    Row{"report_to", kKept},
    Row{"disable_tqdm", kKept},
    Row{"save_*", kKept},
    Row{"do_eval", kKept},
    Row{"do_predict", kKept},
    Row{"do_train", kKept},
    Row{"eval_*", kKept},
    Row{"evaluation_strategy", kKept},
    Row{"evaluate_during_training", kKept},
    Row{"per_device_eval_batch_size", kKept},
    Row{"per_gpu_eval_batch_size", kKept},
    Row{"batch_eval_metrics", kKept},
    Row{"prediction_loss_only", kKept},
    Row{"include_for_metrics", kKept},
    Row{"include_inputs_for_metrics", kKept},
    Row{"include_num_input_tokens_seen", kKept},
    Row{"include_tokens_per_second", kKept},
    Row{"skip_memory_metrics", kKept},
    Row{"bf16_full_eval", kKept},
    Row{"fp16_full_eval", kKept},
    Row{"enable_jit_checkpoint", kKept},
    Row{"torch_empty_cache_steps", kNoEffect},
    Row{"load_best_model_at_end", kKept},
    Row{"remove_unused_columns", kNoEffect},
    Row{"length_column_name", kNoEffect},
    Row{"restore_callback_states_from_checkpoint", kNoEffect},
    Row{"ignore_data_skip", kRestart},
    Row{"train_sampling_strategy", kDataOrder},
    Row{"accelerator_config.non_blocking", kNoEffect},
    Row{"accelerator_config.even_batches", kDataOrder},
    Row{"accelerator_config.use_seedable_sampler", kDataOrder},
    Row{"dataloader_in_order", kDataOrder},
    Row{"dataloader_num_workers", kDataOrder},
    Row{"dataloader_pin_memory", kNoEffect},
    Row{"dataloader_persistent_workers", kNoEffect},
    Row{"dataloader_prefetch_factor", kNoEffect},
    Row{"ddp_*", kSharding},
    Row{"fsdp*", kSharding},
    Row{"local_rank", kHardware},
    Row{"no_cuda", kHardware},
    Row{"use_cpu", kHardware},
    Row{"use_mps_device", kHardware},
    Row{"full_determinism", kNumericsRule},
    Row{"use_liger_kernel", kNumericsRule},
    Row{"liger_kernel_config", kNumericsRule},
    Row{"activation_checkpointing*", kNumericsRule},
    Row{"gradient_checkpointing*", kNumericsRule},
    Row{"torch_compile*", kNumericsRule},
};

constexpr KeyRule kOfModel{Effect::kIdentity, MismatchClass::kBenign,
                           "Instead, the model's key of that name is compared."};
constexpr KeyRule kLength{Effect::kIdentity, MismatchClass::kBenign,
                          "Instead, the model's max_sequence_length is compared."};

constexpr KeyRule kUpdateBefore{Effect::kIdentity, MismatchClass::kConfound,
                                "To save the optimizer before the first step, torch makes its "
                                "state by an update, which AdamW counts: the first updates of "
                                "training are smaller."};

// The config that an experiment of OLMo-core saves (olmo_core/train/config.py). Other callbacks
// than these may change the training.
constexpr std::array kOlmoCoreRows = {
    Row{"run_name", kPlace},
    Row{"launch", kPlace},
    Row{"init_seed", kSeed},
    Row{"data_loader.seed", kSeed},
    Row{"data_loader.work_dir", kPlace},
    Row{"data_loader.num_threads", kNoEffect},
    Row{"data_loader.num_workers", kNoEffect},
    Row{"data_loader.prefetch_factor", kNoEffect},
    Row{"data_loader.target_device_type", kHardware},
    Row{"data_loader.ignore_fingerprint_mismatch", kPermission},
    Row{"dataset.work_dir", kPlace},
    Row{"dataset.paths", kFiles},
    Row{"dataset.mix_base_dir", kPlace},
    Row{"dataset.expand_glob", kFiles},
    Row{"dataset.ignore_fingerprint_mismatch", kPermission},
    Row{"dataset.include_instance_metadata", kNoEffect},
    Row{"dataset.tokenizer.eos_token_id", kOfModel},
    Row{"dataset.tokenizer.pad_token_id", kOfModel},
    Row{"dataset.tokenizer.vocab_size", kOfModel},
    Row{"dataset.sequence_length", kLength},
    Row{"train_module.max_sequence_length", kLength},
    Row{"train_module.rank_microbatch_size", kMicroBatches},
    Row{"train_module.compile_model", kNumericsRule},
    Row{"train_module.ac_config", kNumericsRule},
    Row{"train_module.state_dict_save_opts", kKept},
    Row{"train_module.state_dict_load_opts", kKept},
    Row{"train_module.dp_config.param_dtype", kPrecision},
    Row{"train_module.dp_config.reduce_dtype", kPrecision},
    Row{"train_module.dp_config", kSharding},
    Row{"train_module.tp_config", kSharding},
    Row{"train_module.cp_config", kSharding},
    Row{"train_module.pp_config", kSharding},
    Row{"train_module.optim.compile", kNumericsRule},
    Row{"train_module.optim.fixed_fields", kRestart},
    Row{"train_module.optim.foreach", kNumericsRule},
    Row{"train_module.optim.fused", kNumericsRule},
    Row{"trainer.save_folder", kPlace},
    Row{"trainer.save_overwrite", kPermission},
    Row{"trainer.work_dir", kPlace},
    Row{"trainer.load_path", kStart},
    Row{"trainer.load_strategy", kStart},
    Row{"trainer.checkpointer", kKept},
    Row{"trainer.device", kHardware},
    Row{"trainer.hard_stop", kEnd},
    Row{"trainer.metrics_collect_interval", kKept},
    Row{"trainer.cancel_check_interval", kKept},
    Row{"trainer.no_checkpoints", kKept},
    Row{"trainer.no_evals", kKept},
    Row{"trainer.checkpoints_to_eval", kKept},
    Row{"trainer.async_bookkeeping", kNoEffect},
    Row{"trainer.bookkeeping_soft_timeout", kNoEffect},
    Row{"trainer.callbacks.beaker", kKept},
    Row{"trainer.callbacks.checkpointer.pre_train_checkpoint", kUpdateBefore},
    Row{"trainer.callbacks.checkpointer", kKept},
    Row{"trainer.callbacks.comet", kKept},
    Row{"trainer.callbacks.config_saver", kKept},
    Row{"trainer.callbacks.console_logger", kKept},
    Row{"trainer.callbacks.downstream_evaluator", kKept},
    Row{"trainer.callbacks.gap_monitor", kKept},
    Row{"trainer.callbacks.garbage_collector", kKept},
    Row{"trainer.callbacks.gpu_monitor", kKept},
    Row{"trainer.callbacks.lm_evaluator", kKept},
    Row{"trainer.callbacks.metric_saver", kKept},
    Row{"trainer.callbacks.profiler", kKept},
    Row{"trainer.callbacks.slack_notifier", kKept},
    Row{"trainer.callbacks.speed_monitor", kKept},
    Row{"trainer.callbacks.stability_monitor", kKept},
    Row{"trainer.callbacks.wandb", kKept},
};

std::optional<KeyRule> find(std::span<const Row> rows, std::string_view path) {
  const auto found = std::ranges::find_if(rows, [&](const Row& row) { return names(row, path); });
  return found == rows.end() ? std::nullopt : std::optional(found->rule);
}

/// Of `PREFIX.REST` the rest.
std::optional<std::string_view> below(std::string_view prefix, std::string_view path) {
  if (!path.starts_with(prefix) || path.size() <= prefix.size() || path[prefix.size()] != '.')
    return std::nullopt;
  return path.substr(prefix.size() + 1);
}

}  // namespace

std::optional<KeyRule> rule_of_other_trainer(std::string_view path) {
  if (const auto key = below(kOlmoCore, path)) return find(kOlmoCoreRows, *key);
  return find(kTransformersRows, below(kTransformers, path).value_or(path));
}

}  // namespace olmo::config
