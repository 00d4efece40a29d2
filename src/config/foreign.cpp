#include "config/foreign.h"

namespace olmo::config {
namespace {

constexpr std::string_view kAny = "*";
constexpr std::string_view kNoDropout = "there is no dropout here, as in every OLMo";
constexpr std::string_view kLoader = "batches are read from memory maps, without loader processes";
constexpr std::string_view kOneProcess = "the run is one process on the CPU";
constexpr std::string_view kOwnCheckpoints = "checkpoints have one format, written whole";
constexpr std::string_view kComputed = "it follows from the other batch sizes";

// In the order of olmo/config.py.
const std::vector<ForeignKey> kForeignKeys = {
    {"model.block_group_size", kAny, "it only groups blocks for FSDP", ""},
    {"model.alibi", "false", "ALiBi is not supported, only rotary position embeddings are", ""},
    {"model.alibi_bias_max", kAny, "it matters with ALiBi only", ""},
    {"model.flash_attention", kAny, "there is one attention, exact and causal", ""},
    {"model.attention_dropout", "0", kNoDropout, ""},
    {"model.multi_query_attention", kAny, "", ""},  // read into n_kv_heads
    {"model.residual_dropout", "0", kNoDropout, ""},
    {"model.embedding_dropout", "0", kNoDropout, ""},
    {"model.embedding_layer_norm", "false", "the embeddings are not normalized, as in every OLMo",
     ""},
    {"model.init_device", kAny, "weights are initialized where they stay", ""},
    {"model.precision", kAny, "`precision` of the run decides", ""},
    {"optimizer.no_decay_norm_and_bias", kAny, "",
     ""},  // read into decay_norm_and_bias and decay_embeddings
    {"optimizer.metrics_log_interval", kAny, "metrics of every step are recorded", ""},
    {"optimizer.record_update_metrics", kAny, "metrics of every step are recorded", ""},
    {"data.pad_direction", kAny, "instances of token files are never padded", ""},
    {"data.generate_doc_lengths", "false", "attention within documents only is not supported", ""},
    {"data.num_workers", kAny, kLoader, ""},
    {"data.pin_memory", kAny, kLoader, ""},
    {"data.prefetch_factor", kAny, kLoader, ""},
    {"data.persistent_workers", kAny, kLoader, ""},
    {"data.timeout", kAny, kLoader, ""},
    {"data.custom_dataset", "null", "data come from token files only, no Python class is loaded",
     "name module args collate_fn token_field collate_config"},
    {"remote_save_folder", kAny, "checkpoints are written to `save_folder` only", ""},
    {"canceled_check_interval", kAny, "signals and the time limit are looked at after every step",
     ""},
    {"force_save_unsharded", kAny, kOwnCheckpoints, ""},
    {"load_path_sharded_checkpointer", kAny, kOwnCheckpoints, ""},
    {"sharded_checkpointer", kAny, kOwnCheckpoints, ""},
    {"new_style_checkpoints", kAny, kOwnCheckpoints, ""},
    {"device_train_batch_size", kAny, kComputed, ""},
    {"device_train_grad_accum", kAny, kComputed, ""},
    {"wandb", kAny, "the record is a database of the run's own (see `runs`)",
     "project entity group name tags log_artifacts rank_zero_only log_interval"},
    {"speed_monitor", kAny, "speed is recorded for every step", "window_size gpu_flops_available"},
    {"console_log_interval", kAny, "progress is shown by time, not by step", ""},
    {"gen1_gc_interval", kAny, "there is no garbage collector", ""},
    {"compile", kAny, "there is nothing to compile at run time", "mode fullgraph backend dynamic"},
    {"distributed_strategy", kAny, kOneProcess, ""},
    {"fsdp", kAny, kOneProcess,
     "use_orig_params sharding_strategy wrapping_strategy precision "
     "hybrid_sharding_num_model_replicas"},
    {"ddp", kAny, kOneProcess, "grad_sync_mode find_unused_params"},
    {"single", kAny, kOneProcess, "device"},
    {"save_data_indices", kAny,
     "the record has a hash of every batch, and `data inspect --step` shows it", ""},
    {"python_profiling", kAny, "there is no Python", ""},
    {"torch_profiling", kAny, "there is no profiler", ""},
    {"activation_checkpointing", kAny, "activations are kept; recomputing them gives the same bits",
     ""},
    {"fused_loss", kAny, "the loss is always computed in one pass with its head", ""},
    {"hf_datasets_cache_dir", kAny, "no data set is fetched while training", ""},
    {"module_outputs_save_steps", kAny, "outputs of modules are not saved", ""},
};

const std::vector<RequiredKey> kRequiredYamlKeys = {
    {"model.rope", "false (learned positions)", "true"}, {"model.include_bias", "true", "false"},
    {"model.attention_dropout", "0.1", "0.0"},           {"model.residual_dropout", "0.1", "0.0"},
    {"model.embedding_dropout", "0.1", "0.0"},
};

}  // namespace

const std::vector<ForeignKey>& foreign_keys() { return kForeignKeys; }

const ForeignKey* find_foreign_key(std::string_view path) {
  for (const auto& key : kForeignKeys) {
    if (key.path == path) return &key;
  }
  return nullptr;
}

const std::vector<RequiredKey>& required_yaml_keys() { return kRequiredYamlKeys; }

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const auto end = text.find(' ');
    if (end != 0) words.emplace_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return words;
}

}  // namespace olmo::config
