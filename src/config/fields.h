#pragma once

// The keys of each config struct, listed once. Reading, writing and the list of known names all
// walk these lists, so that they cannot disagree. `visit(name, member)` is called for each key in
// the order of OLMo's files.

#include <type_traits>

#include "config/train_config.h"

namespace olmo::config {

template <class T, class Struct>
concept ConstOrNot = std::is_same_v<std::remove_const_t<T>, Struct>;

template <ConstOrNot<model::ModelConfig> T, class Visitor>
void visit_fields(T& c, Visitor& visit) {
  visit("d_model", c.d_model);
  visit("n_heads", c.n_heads);
  visit("n_kv_heads", c.n_kv_heads);
  visit("clip_qkv", c.clip_qkv);
  visit("n_layers", c.n_layers);
  visit("mlp_ratio", c.mlp_ratio);
  visit("mlp_hidden_size", c.mlp_hidden_size);
  visit("activation_type", c.activation_type);
  visit("block_type", c.block_type);
  visit("rope", c.rope);
  visit("rope_full_precision", c.rope_full_precision);
  visit("rope_theta", c.rope_theta);
  visit("attention_layer_norm", c.attention_layer_norm);
  visit("attention_layer_norm_with_affine", c.attention_layer_norm_with_affine);
  visit("layer_norm_type", c.layer_norm_type);
  visit("layer_norm_with_affine", c.layer_norm_with_affine);
  visit("layer_norm_eps", c.layer_norm_eps);
  visit("norm_after", c.norm_after);
  visit("max_sequence_length", c.max_sequence_length);
  visit("include_bias", c.include_bias);
  visit("bias_for_layer_norm", c.bias_for_layer_norm);
  visit("scale_logits", c.scale_logits);
  visit("vocab_size", c.vocab_size);
  visit("embedding_size", c.embedding_size);
  visit("weight_tying", c.weight_tying);
  visit("eos_token_id", c.eos_token_id);
  visit("pad_token_id", c.pad_token_id);
  visit("init_fn", c.init_fn);
  visit("init_std", c.init_std);
  visit("init_cutoff_factor", c.init_cutoff_factor);
  visit("scale_emb_init", c.scale_emb_init);
  visit("emb_init_std", c.emb_init_std);
}

template <ConstOrNot<optim::OptimizerConfig> T, class Visitor>
void visit_fields(T& c, Visitor& visit) {
  visit("name", c.name);
  visit("learning_rate", c.learning_rate);
  visit("weight_decay", c.weight_decay);
  visit("betas", c.betas);
  visit("eps", c.eps);
  visit("selective_updates", c.selective_updates);
  visit("decay_norm_and_bias", c.decay_norm_and_bias);
  visit("decay_embeddings", c.decay_embeddings);
}

template <ConstOrNot<optim::SchedulerConfig> T, class Visitor>
void visit_fields(T& c, Visitor& visit) {
  visit("name", c.name);
  visit("units", c.units);
  visit("t_warmup", c.t_warmup);
  visit("t_max", c.t_max);
  visit("alpha_f", c.alpha_f);
  visit("grad_clip_warmup_steps", c.grad_clip_warmup_steps);
  visit("grad_clip_warmup_factor", c.grad_clip_warmup_factor);
  visit("warmup_min_lr", c.warmup_min_lr);
}

template <ConstOrNot<data::InstanceFilterConfig> T, class Visitor>
void visit_fields(T& c, Visitor& visit) {
  visit("repetition_max_period", c.repetition_max_period);
  visit("repetition_min_period", c.repetition_min_period);
  visit("repetition_max_count", c.repetition_max_count);
}

template <ConstOrNot<data::DataConfig> T, class Visitor>
void visit_fields(T& c, Visitor& visit) {
  visit("paths", c.paths);
  visit("datasets", c.datasets);
  visit("memmap_dtype", c.memmap_dtype);
  visit("label_mask_paths", c.label_mask_paths);
  visit("generate_attention_mask", c.generate_attention_mask);
  visit("drop_last", c.drop_last);
  visit("shuffle", c.shuffle);
  visit("seed", c.seed);
  visit("instance_filter", c.instance_filter);
}

template <ConstOrNot<TokenizerConfig> T, class Visitor>
void visit_fields(T& c, Visitor& visit) {
  visit("identifier", c.identifier);
  visit("truncate_direction", c.truncate_direction);
}

template <ConstOrNot<TrainConfig> T, class Visitor>
void visit_fields(T& c, Visitor& visit) {
  visit("run_name", c.run_name);
  visit("seed", c.seed);
  visit("epoch", c.epoch);
  visit("dry_run", c.dry_run);
  visit("model", c.model);
  visit("optimizer", c.optimizer);
  visit("scheduler", c.scheduler);
  visit("data", c.data);
  visit("tokenizer", c.tokenizer);
  visit("max_duration", c.max_duration);
  visit("stop_at", c.stop_at);
  visit("stop_after", c.stop_after);
  visit("global_train_batch_size", c.global_train_batch_size);
  visit("device_train_microbatch_size", c.device_train_microbatch_size);
  visit("precision", c.precision);
  visit("max_grad_norm", c.max_grad_norm);
  visit("max_grad_norm_ratio", c.max_grad_norm_ratio);
  visit("softmax_auxiliary_loss", c.softmax_auxiliary_loss);
  visit("auxiliary_loss_multiplier", c.auxiliary_loss_multiplier);
  visit("time_limit", c.time_limit);
  visit("extra_steps_after_cancel", c.extra_steps_after_cancel);
  visit("early_stopping_factor", c.early_stopping_factor);
  visit("save_folder", c.save_folder);
  visit("save_interval", c.save_interval);
  visit("save_interval_unsharded", c.save_interval_unsharded);
  visit("save_interval_ephemeral", c.save_interval_ephemeral);
  visit("save_num_checkpoints_to_keep", c.save_num_checkpoints_to_keep);
  visit("save_num_unsharded_checkpoints_to_keep", c.save_num_unsharded_checkpoints_to_keep);
  visit("save_overwrite", c.save_overwrite);
  visit("save_failures_allowed", c.save_failures_allowed);
  visit("no_pre_train_checkpoint", c.no_pre_train_checkpoint);
  visit("load_path", c.load_path);
  visit("try_load_latest_save", c.try_load_latest_save);
  visit("reset_optimizer_state", c.reset_optimizer_state);
  visit("reset_trainer_state", c.reset_trainer_state);
  visit("restore_dataloader", c.restore_dataloader);
  visit("fast_forward_batches", c.fast_forward_batches);
  visit("eval_interval", c.eval_interval);
  visit("eval_on_load", c.eval_on_load);
  visit("eval_subset_num_batches", c.eval_subset_num_batches);
  visit("device_eval_batch_size", c.device_eval_batch_size);
  visit("evaluators", c.evaluators);
  visit("load_weights", c.load_weights);
  visit("numerics", c.numerics);
  visit("isa", c.isa);
  visit("device", c.device);
  visit("threads", c.threads);
  visit("hash_interval", c.hash_interval);
  visit("trace_interval", c.trace_interval);
  visit("allow_eos_mismatch", c.allow_eos_mismatch);
}

}  // namespace olmo::config
