#include "config/foreign.h"

#include <algorithm>

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

bool is_url(const std::string& path) { return path.find("://") != std::string::npos; }

void check_local(std::vector<ConfigProblem>& problems, const std::string& key,
                 const std::vector<std::string>& paths) {
  const auto urls = std::count_if(paths.begin(), paths.end(), is_url);
  if (urls == 0) return;
  const auto first = std::find_if(paths.begin(), paths.end(), is_url);
  problems.push_back({key, "names " + std::to_string(urls) + (urls == 1 ? " URL" : " URLs") +
                               " such as " + *first + "; give local files: " + key +
                               "=[FILE, ...]"});
}

void check_data(std::vector<ConfigProblem>& problems, const data::DataConfig& data) {
  check_local(problems, "data.paths", data.paths);
  std::vector<std::string> labelled;
  for (const auto& [label, paths] : data.datasets)
    labelled.insert(labelled.end(), paths.begin(), paths.end());
  check_local(problems, "data.datasets", labelled);
  check_local(problems, "data.label_mask_paths", data.label_mask_paths);
  if (data.paths.empty() && labelled.empty()) {
    problems.push_back({"data.paths", "names no token files; give data.paths=[FILE, ...]"});
  }
}

void check_path(std::vector<ConfigProblem>& problems, const std::string& key,
                const std::optional<std::string>& path) {
  if (!path || !is_url(*path)) return;
  problems.push_back({key, "is the URL " + *path + "; give a local path: " + key + "=PATH"});
}

void check_model(std::vector<ConfigProblem>& problems, const model::ModelConfig& model) {
  if (model.include_bias) {
    problems.push_back(
        {"model.include_bias",
         "is true; linear layers have no biases here, as in every OLMo: expected false"});
  }
  if (!model.rope) {
    problems.push_back(
        {"model.rope", "is false; positions are rotary here, as in every OLMo: expected true"});
  }
  const auto only = [&](const char* key, const std::string& value,
                        const std::vector<std::string>& supported) {
    if (std::find(supported.begin(), supported.end(), value) != supported.end()) return;
    std::string list;
    for (const auto& word : supported) list += (list.empty() ? "`" : ", `") + word + "`";
    problems.push_back({key, "is `" + value + "`, which is not supported here: expected " + list});
  };
  only("model.activation_type", model.activation_type, {"swiglu"});
  only("model.block_type", model.block_type, {"sequential"});
  only("model.init_fn", model.init_fn, {"mitchell", "normal", "full_megatron"});
}

}  // namespace

const std::vector<ForeignKey>& foreign_keys() { return kForeignKeys; }

const ForeignKey* find_foreign_key(std::string_view path) {
  for (const auto& key : kForeignKeys) {
    if (key.path == path) return &key;
  }
  return nullptr;
}

const std::vector<RequiredKey>& required_yaml_keys() { return kRequiredYamlKeys; }

std::vector<ConfigProblem> unsupported(const TrainConfig& config) {
  std::vector<ConfigProblem> problems;
  check_model(problems, config.model);
  check_data(problems, config.data);
  check_path(problems, "save_folder", config.save_folder);
  check_path(problems, "load_path", config.load_path);
  check_path(problems, "load_weights", config.load_weights);
  if (config.data.generate_attention_mask) {
    problems.push_back({"data.generate_attention_mask",
                        "is true; attention is causal and knows no other mask: expected false"});
  }
  if (config.load_path && !config.restore_dataloader) {
    problems.push_back(
        {"restore_dataloader", "is false; a run goes on where its data order was: expected true"});
  }
  if (config.load_path && config.fast_forward_batches.value_or(0) != 0) {
    problems.push_back({"fast_forward_batches",
                        "is not 0; the data order is a pure function of the step: expected null"});
  }
  if (config.precision != "fp32") {
    problems.push_back(
        {"precision", "is `" + config.precision +
                          "`; this build trains in fp32 on the CPU: give precision=fp32"});
  }
  return problems;
}

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
