#pragma once

// The table of config keys: one row for each, and the only place that says what a key is. Reading,
// writing, the experiment digest, the gate of a comparison, `train --help KEY`, the table in
// configs/README.md and configs/schema.json all walk these rows, so that they cannot disagree.
// Types and defaults are those of the struct's member. `visit(row, member)` is called in the order
// of OLMo's files; a key of OLMo's that has no member here has a row all the same (`Absent`).
//
// To add a key: the member in its struct, its row here, a check in its room's problems_of(), and
// another value in tests/config/key_effect_test.cpp, which trains with both.

#include <type_traits>

#include "config/key_table.h"
#include "config/train_config.h"
#include "model/recomputation.h"
#include "model/units.h"
#include "optim/lr_schedule.h"

namespace olmo::config {

template <class T, class Struct>
concept ConstOrNot = std::is_same_v<std::remove_const_t<T>, Struct>;

// What becomes of a run if a key changes, and what two runs that differ in it are to each other.
inline constexpr const char* kSameReason = "It does not change what is computed.";
inline constexpr const char* kRoundingReason =
    "It changes the order or rounding of operations only.";
inline constexpr KeyRule kModel{Effect::kIdentity, MismatchClass::kFatal, "Another model."};
inline constexpr KeyRule kDrawn{Effect::kIdentity, MismatchClass::kFatal,
                                "Weights drawn otherwise."};
inline constexpr KeyRule kModelFixed{Effect::kRefused, MismatchClass::kFatal, "Another model."};
inline constexpr KeyRule kModelIds{Effect::kIdentity, MismatchClass::kBenign,
                                   "No step of a training reads it."};
inline constexpr KeyRule kVocabulary{Effect::kIdentity, MismatchClass::kBenign,
                                     "Instead, the rows of the embeddings are compared."};
inline constexpr KeyRule kTraining{Effect::kIdentity, MismatchClass::kConfound,
                                   "It changes the training."};
inline constexpr KeyRule kZLoss{Effect::kIdentity, MismatchClass::kConfound,
                                "It changes the training; OLMo's own trainer takes 1e-4, whatever "
                                "is set."};
inline constexpr KeyRule kBatches{Effect::kIdentity, MismatchClass::kConfound,
                                  "The batches are made in another way."};
inline constexpr KeyRule kBatchesFixed{Effect::kRefused, MismatchClass::kConfound,
                                       "The batches are made in another way."};
inline constexpr KeyRule kBatchSize{Effect::kIdentity, MismatchClass::kConfound,
                                    "The runs are aligned on tokens where both records tell them."};
inline constexpr KeyRule kMicroBatches{Effect::kIdentity, MismatchClass::kBenign, kRoundingReason};
inline constexpr KeyRule kPrecision{Effect::kIdentity, MismatchClass::kConfound,
                                    "Another precision."};
inline constexpr KeyRule kMixedPrecision{Effect::kPrecision, MismatchClass::kConfound,
                                         "Another precision."};
inline constexpr KeyRule kRotations{Effect::kRefused, MismatchClass::kConfound,
                                    "Another precision."};
// Logs of other trainers hash neither weights nor batches.
inline constexpr const char* kBatchesInstead =
    "Instead, the hashes of the batches are compared where both records have them.";
inline constexpr const char* kWeightsInstead =
    "Instead, the hashes of the weights are compared where both records have them.";
inline constexpr KeyRule kSeed{Effect::kIdentity, MismatchClass::kBenign,
                               "Instead, the hashes of the initial weights and of the batches are "
                               "compared where both records have them."};
inline constexpr KeyRule kDataOrder{Effect::kIdentity, MismatchClass::kBenign, kBatchesInstead};
inline constexpr KeyRule kRestart{Effect::kIdentity, MismatchClass::kBenign, kWeightsInstead};
inline constexpr KeyRule kNewMoments{Effect::kIdentity, MismatchClass::kConfound,
                                     "Moments begin anew and, where counters do not, the learning "
                                     "rate does."};
inline constexpr KeyRule kStart{Effect::kPlacement, MismatchClass::kBenign, kWeightsInstead};
inline constexpr KeyRule kFiles{
    Effect::kPlacement, MismatchClass::kBenign,
    "Instead of paths, the digests of files are compared where both records have them."};
inline constexpr KeyRule kNumericsRule{Effect::kPlacement, MismatchClass::kBenign, kRoundingReason};
inline constexpr KeyRule kHardware{Effect::kPlacement, MismatchClass::kBenign,
                                   "Under numerics=portable it changes no bit, under fast at most "
                                   "the order or rounding of operations."};
inline constexpr KeyRule kSharding{Effect::kPlacement, MismatchClass::kBenign,
                                   "It changes no bit here; in another trainer it may change the "
                                   "order of sums."};
inline constexpr KeyRule kPlace{Effect::kPlacement, MismatchClass::kBenign, kSameReason};
inline constexpr KeyRule kEnd{Effect::kLimit, MismatchClass::kBenign,
                              "The common steps are compared."};
inline constexpr KeyRule kPermission{Effect::kLimit, MismatchClass::kBenign, kSameReason};
inline constexpr KeyRule kKept{Effect::kRecord, MismatchClass::kBenign, kSameReason};
inline constexpr KeyRule kNoEffect{Effect::kIgnored, MismatchClass::kBenign, kSameReason};
inline constexpr KeyRule kOtherRounding{Effect::kIgnored, MismatchClass::kBenign, kRoundingReason};
inline constexpr KeyRule kOtherPrecision{Effect::kIgnored, MismatchClass::kConfound,
                                         "Another precision."};

template <ConstOrNot<ops::RopeScaling> T, class Visitor>
void visit_keys(T& c, Visitor& visit) {
  visit(Key{"factor", kModel, "How many times longer than the original ones sequences may be"},
        c.factor);
  visit(Key{"original_max_position_embeddings", kModel, "Tokens of the original sequences"},
        c.original_max_position_embeddings);
  visit(Key{"beta_fast", kModel, "Turns over the original length above which a speed is kept"},
        c.beta_fast);
  visit(Key{"beta_slow", kModel, "Turns below which a rotation becomes slower by the whole factor"},
        c.beta_slow);
  visit(Key{"attention_factor", kModel,
            "Of cosines and sines; null: 0.1 times the logarithm of factor, plus 1"},
        c.attention_factor);
}

template <ConstOrNot<model::ModelConfig> T, class Visitor>
void visit_keys(T& c, Visitor& visit) {
  constexpr const char* kNoDropout = "there is no dropout here, as in every OLMo";
  visit(Key{"d_model", kModel, "Width of the hidden states"}, c.d_model);
  visit(Key{"n_heads", kModel, "Attention heads of a block"}, c.n_heads);
  visit(Key{"n_kv_heads", kModel, "Heads of keys and values; null: as many as n_heads"},
        c.n_kv_heads);
  visit(Key{"clip_qkv", kModel, "Limit on the size of queries, keys and values; null: none"},
        c.clip_qkv);
  visit(Key{"n_layers", kModel, "Number of blocks"}, c.n_layers);
  visit(Key{"mlp_ratio", kModel, "Width of the MLP as a multiple of d_model"}, c.mlp_ratio);
  visit(Key{"mlp_hidden_size", kModel,
            "Rows of ff_proj, of SwiGLU gate and value together; wins over mlp_ratio"},
        c.mlp_hidden_size);
  visit(Key{"activation_type", kModel, "Activation of the MLP", model::kActivationTypes},
        c.activation_type);
  visit(Key{"block_type", kModel, "Order of attention and MLP in a block", model::kBlockTypes},
        c.block_type);
  visit(Key{"block_group_size", kPlace,
            "Blocks of a group; fsdp.wrapping_strategy=by_block_group shards group by group"},
        c.block_group_size);
  visit(Key{"alibi", kModelFixed, "ALiBi is not supported, only rotary position embeddings are"},
        Absent{.accepted = "false"});
  visit(Key{"alibi_bias_max", kNoEffect, "it matters with ALiBi only"}, Absent{});
  visit(Key{"rope",
            kModelFixed,
            "Rotary position embeddings; positions are rotary here, as in "
            "every OLMo",
            {},
            "false (learned positions)"},
        c.rope);
  // In fp32 the key asks for what happens anyway.
  visit(Key{"rope_full_precision", kRotations,
            "rotations are always computed in fp32, where OLMo would round them to bf16"},
        Absent{.accepted = "true", .only_with = "precision=amp_bf16", .in_digest = "true"});
  visit(Key{"rope_theta", kModel, "Base of the rotary embedding's angles"}, c.rope_theta);
  visit(later(Key{"rope_scaling", kModel,
                  "YaRN: slower rotations in the layers of full attention, as OLMo 3; null: none"}),
        c.rope_scaling);
  visit(later(Key{"sliding_window", kModel,
                  "Tokens that most layers see, as OLMo 3; null: every layer sees all of them"}),
        c.sliding_window);
  visit(later(Key{"full_attention_every", kModel,
                  "Of so many layers the last has full attention; with sliding_window"}),
        c.full_attention_every);
  visit(Key{"flash_attention", kOtherRounding, "there is one attention, exact and causal"},
        Absent{});
  visit(Key{"attention_dropout", kModelFixed, kNoDropout, {}, "0.1"}, Absent{.accepted = "0"});
  visit(Key{"multi_query_attention", kModel, "OLMo's old name for one head of keys and values"},
        Absent{.accepted = "*"});
  visit(Key{"attention_layer_norm", kModel, "Norm of queries and keys, over their full width"},
        c.attention_layer_norm);
  visit(Key{"residual_dropout", kModelFixed, kNoDropout, {}, "0.1"}, Absent{.accepted = "0"});
  visit(Key{"embedding_dropout", kModelFixed, kNoDropout, {}, "0.1"}, Absent{.accepted = "0"});
  visit(Key{"embedding_layer_norm", kModelFixed,
            "the embeddings are not normalized, as in every OLMo"},
        Absent{.accepted = "false"});
  visit(Key{"attention_layer_norm_with_affine", kModel,
            "Whether the norms of queries and keys have weights"},
        c.attention_layer_norm_with_affine);
  visit(Key{"layer_norm_type", kModel, "Kind of the norms; rms subtracts no mean",
            model::kLayerNormTypes},
        c.layer_norm_type);
  visit(Key{"layer_norm_with_affine", kModel, "Whether the other norms have weights"},
        c.layer_norm_with_affine);
  visit(Key{"layer_norm_eps", kModel, "Added to the variance in a norm"}, c.layer_norm_eps);
  visit(Key{"norm_after", kModel, "Norm after attention and MLP instead of before, as OLMo 2"},
        c.norm_after);
  visit(Key{"max_sequence_length", kModel, "Tokens of a training instance"}, c.max_sequence_length);
  visit(Key{"include_bias", kModelFixed, "Biases of linear layers; no OLMo has them", {}, "true"},
        c.include_bias);
  visit(Key{"bias_for_layer_norm", kModel, "Biases of the norms; null: as include_bias"},
        c.bias_for_layer_norm);
  visit(Key{"scale_logits", kModel, "Divide the logits by the square root of d_model"},
        c.scale_logits);
  visit(Key{"vocab_size", kVocabulary, "Tokens of the tokenizer"}, c.vocab_size);
  visit(Key{"embedding_size", kModel, "Rows of the embedding; null: as many as vocab_size"},
        c.embedding_size);
  visit(Key{"weight_tying", kModel, "One matrix for embedding and head"}, c.weight_tying);
  visit(Key{"eos_token_id", kDataOrder,
            "Id that ends a document, for data.generate_doc_lengths and for evaluations"},
        c.eos_token_id);
  visit(Key{"pad_token_id", kModelIds, "Id that fills up a batch; written into exported models"},
        c.pad_token_id);
  visit(Key{"init_device", kNoEffect, "weights are initialized where they stay"}, Absent{});
  visit(Key{"init_fn", kDrawn, "Distribution of the initial weights", model::kInitFns}, c.init_fn);
  visit(Key{"init_std", kDrawn, "Standard deviation of the initial weights"}, c.init_std);
  visit(Key{"init_cutoff_factor", kDrawn,
            "Standard deviations beyond which initial weights are drawn again; null: none for "
            "normal, 3 for the others"},
        c.init_cutoff_factor);
  visit(Key{"scale_emb_init", kDrawn,
            "Scale the embedding's initial weights by the square root of d_model (full_megatron)"},
        c.scale_emb_init);
  visit(Key{"emb_init_std", kDrawn,
            "Standard deviation of the embedding's initial weights; null: that of init_fn"},
        c.emb_init_std);
  visit(Key{"precision", kOtherPrecision, "`precision` of the run decides"}, Absent{});
}

template <ConstOrNot<optim::OptimizerConfig> T, class Visitor>
void visit_keys(T& c, Visitor& visit) {
  visit(Key{"name", kTraining, "Optimizer", optim::kOptimizers}, c.name);
  visit(Key{"learning_rate", kTraining, "Highest learning rate, which the schedule scales"},
        c.learning_rate);
  visit(Key{"weight_decay", kTraining, "Weight decay, a multiple of the learning rate"},
        c.weight_decay);
  visit(Key{"betas", kTraining, "Decay of the two moving averages, each in [0, 1)"}, c.betas);
  visit(Key{"eps", kTraining, "Added to the denominator of AdamW's update"}, c.eps);
  visit(
      Key{"no_decay_norm_and_bias", kTraining, "OLMo's old name for the opposite of the next two"},
      Absent{.accepted = "*"});
  visit(Key{"selective_updates", kTraining, "Leave elements alone whose gradient is 0"},
        c.selective_updates);
  visit(Key{"decay_norm_and_bias", kTraining, "Weight decay for norms and biases, too"},
        c.decay_norm_and_bias);
  visit(Key{"decay_embeddings", kTraining, "Weight decay for embeddings, too"}, c.decay_embeddings);
  visit(Key{"metrics_log_interval", kNoEffect, "metrics of every step are recorded"}, Absent{});
  visit(Key{"record_update_metrics", kOtherRounding, "metrics of every step are recorded"},
        Absent{});
}

template <ConstOrNot<optim::SchedulerConfig> T, class Visitor>
void visit_keys(T& c, Visitor& visit) {
  visit(Key{"name", kTraining, "How the learning rate goes after the warm-up",
            optim::schedule_names()},
        c.name);
  visit(Key{"units", kTraining, "What the scheduler's times count", optim::kScheduleUnits},
        c.units);
  visit(Key{"t_warmup", kTraining, "Length of the warm-up"}, c.t_warmup);
  visit(Key{"t_max", kTraining, "Where the schedule ends; null: with max_duration"}, c.t_max);
  visit(Key{"alpha_f", kTraining, "Learning rate at the end, as a share of the highest"},
        c.alpha_f);
  visit(Key{"grad_clip_warmup_steps", kTraining,
            "Until when the clipping limit is multiplied by grad_clip_warmup_factor"},
        c.grad_clip_warmup_steps);
  visit(Key{"grad_clip_warmup_factor", kTraining, "Factor on the clipping limit at the start"},
        c.grad_clip_warmup_factor);
  visit(Key{"warmup_min_lr", kTraining,
            "Learning rate at which the warm-up begins; null: a tenth of the highest"},
        c.warmup_min_lr);
}

template <ConstOrNot<data::InstanceFilterConfig> T, class Visitor>
void visit_keys(T& c, Visitor& visit) {
  visit(Key{"repetition_max_period", kBatches, "Longest period of a repetition, in tokens"},
        c.repetition_max_period);
  visit(Key{"repetition_min_period", kBatches, "Shortest period of a repetition, in tokens"},
        c.repetition_min_period);
  visit(Key{"repetition_max_count", kBatches,
            "Repetitions from which on an instance gives no labels"},
        c.repetition_max_count);
}

template <ConstOrNot<data::DataConfig> T, class Visitor>
void visit_keys(T& c, Visitor& visit) {
  constexpr const char* kLoader = "batches are read from memory maps, without loader processes";
  visit(Key{"paths", kFiles, "Token files, in the order of training before it is shuffled"},
        c.paths);
  visit(Key{"datasets", kFiles, "Token files by label, read in the order of the labels"},
        c.datasets);
  visit(Key{"memmap_dtype", kBatches, "Type of the ids in the token files", data::kMemmapDtypes},
        c.memmap_dtype);
  visit(Key{"label_mask_paths", kFiles,
            "For each token file one of as many bytes: 0 where a token is no label"},
        c.label_mask_paths);
  visit(Key{"pad_direction", kNoEffect, "instances of token files are never padded"}, Absent{});
  visit(
      Key{"generate_attention_mask", kBatchesFixed, "attention is causal and knows no other mask"},
      Absent{.accepted = "false", .in_digest = "false"});
  visit(later(Key{"generate_doc_lengths", kBatches,
                  "Attention keeps to documents, which end with model.eos_token_id"}),
        c.generate_doc_lengths);
  visit(Key{"num_workers", kNoEffect, kLoader}, Absent{});
  visit(Key{"drop_last", kDataOrder,
            "Cut an epoch to what the ranks can share evenly, instead of filling it up"},
        c.drop_last);
  visit(Key{"pin_memory", kNoEffect, kLoader}, Absent{});
  visit(Key{"prefetch_factor", kNoEffect, kLoader}, Absent{});
  visit(Key{"persistent_workers", kNoEffect, kLoader}, Absent{});
  visit(Key{"timeout", kNoEffect, kLoader}, Absent{});
  visit(Key{"shuffle", kBatches, "Shuffle the instances of each epoch; false: file order"},
        c.shuffle);
  visit(Key{"seed", kDataOrder, "Seed of the data order; null: `seed` of the run"}, c.seed);
  visit(Key{"instance_filter", kBatches,
            "Mask instances that repeat themselves; null: none is masked"},
        c.instance_filter);
  visit(Key{"custom_dataset", kBatchesFixed,
            "data come from token files only, no Python class is loaded"},
        Absent{.children = "name module args collate_fn token_field collate_config"});
}

template <ConstOrNot<TokenizerConfig> T, class Visitor>
void visit_keys(T& c, Visitor& visit) {
  visit(Key{"identifier", kFiles, "A tokenizer.json, or the name of a fetched one (dolma-v1_5)"},
        c.identifier);
  visit(Key{"truncate_direction", kNoEffect, "token files are cut when they are made"},
        Absent{.accepted = "right"});
}

template <ConstOrNot<FsdpConfig> T, class Visitor>
void visit_keys(T& c, Visitor& visit) {
  visit(Key{"use_orig_params", kNoEffect, "parameters keep their names however they are sharded"},
        Absent{.accepted = "true"});
  visit(Key{"sharding_strategy", kSharding,
            "What a rank holds beside its share of moments and sums of gradients. FULL_SHARD: its "
            "share of the weights; SHARD_GRAD_OP: so too, but whole weights from forward to "
            "backward; NO_SHARD: whole weights; the hybrid ones: as the first two, within each "
            "replica",
            kShardingStrategies},
        c.sharding_strategy);
  visit(
      Key{"wrapping_strategy", kPlace,
          "Parameters that are gathered and freed together: each block, each group of "
          "model.block_group_size blocks, every n-th block with the others in the root, or blocks "
          "of 100 million parameters and more; null: the whole model. Embedding and head are in "
          "the root, also with _and_size",
          model::kWrappingStrategies},
      c.wrapping_strategy);
  visit(Key{"precision", kMixedPrecision,
            "What amp_bf16 rounds under fsdp. mixed: parameters and residual stream, too; null: as "
            "ddp; pure, OLMo's default, also adds gradients in bf16 and is refused",
            kFsdpPrecisions, "pure"},
        c.precision);
  visit(Key{"hybrid_sharding_num_model_replicas", kSharding,
            "Copies of the model that a hybrid sharding_strategy keeps; null: one a node"},
        c.hybrid_sharding_num_model_replicas);
}

template <ConstOrNot<TrainConfig> T, class Visitor>
void visit_keys(T& c, Visitor& visit) {
  constexpr const char* kOwnCheckpoints = "checkpoints have one format, written whole";
  constexpr const char* kComputed = "it follows from the other batch sizes";
  visit(Key{"$schema", kNoEffect, "it names the schema that an editor checks a file with"},
        Absent{.accepted = "*"});
  visit(Key{"run_name", kKept, "Name of the run in its record"}, c.run_name);
  visit(Key{"seed", kSeed, "Seed of the initial weights, and of the data order"}, c.seed);
  visit(Key{"epoch", kBatches,
            "Epoch of the first step, counted from 0; null: 0, or that of load_path"},
        c.epoch);
  visit(Key{"dry_run", kPermission, "Print the plan and do not train, as --dry-run"}, c.dry_run);
  visit(Key{"model", kModel, "The network"}, c.model);
  visit(Key{"optimizer", kTraining, "How weights are updated"}, c.optimizer);
  visit(Key{"scheduler", kTraining, "How the learning rate changes"}, c.scheduler);
  visit(Key{"data", kBatches, "What a training step sees"}, c.data);
  visit(Key{"tokenizer", kFiles, "What made the token files"}, c.tokenizer);
  visit(Key{"max_duration", kTraining,
            "Length of the training: steps (1000), tokens (2e12T) or epochs (2ep)"},
        c.max_duration);
  visit(Key{"stop_at", kEnd, "Last step; the schedule goes on as if there were more"}, c.stop_at);
  visit(Key{"stop_after", kEnd, "Steps that this process trains"}, c.stop_after);
  visit(Key{"global_train_batch_size", kBatchSize, "Instances of a step"},
        c.global_train_batch_size);
  visit(Key{"device_train_batch_size", kOtherRounding, kComputed}, Absent{});
  visit(Key{"device_train_microbatch_size", kMicroBatches,
            "Instances that are computed at once; the last of a step may be fewer"},
        c.device_train_microbatch_size);
  visit(Key{"device_train_grad_accum", kOtherRounding, kComputed}, Absent{});
  visit(Key{"precision", kPrecision, "What is computed in: fp32 or amp_bf16"}, c.precision);
  visit(Key{"max_grad_norm", kTraining, "Limit on the norm of all gradients; null: none"},
        c.max_grad_norm);
  visit(Key{"max_grad_norm_ratio", kTraining,
            "Limit on a gradient's norm as a multiple of its average; wins over max_grad_norm"},
        c.max_grad_norm_ratio);
  visit(Key{"softmax_auxiliary_loss", kTraining, "Add the z-loss to the loss"},
        c.softmax_auxiliary_loss);
  visit(Key{"auxiliary_loss_multiplier", kZLoss,
            "Weight of the z-loss; OLMo's own trainer takes 1e-4, whatever is set"},
        c.auxiliary_loss_multiplier);
  visit(Key{"time_limit", kEnd, "Seconds after which this process saves and stops; null: none"},
        c.time_limit);
  visit(Key{"extra_steps_after_cancel", kNoEffect, "a run that is stopped saves and ends at once"},
        Absent{.accepted = "0 10"});
  visit(Key{"canceled_check_interval", kNoEffect,
            "signals and the time limit are looked at after every step"},
        Absent{});
  visit(Key{"early_stopping_factor", kEnd,
            "Stop once the loss is above this multiple of the lowest so far; null: never"},
        c.early_stopping_factor);
  visit(Key{"save_folder", kPlace, "The run folder: checkpoints and record"}, c.save_folder);
  visit(Key{"remote_save_folder", kNoEffect, "checkpoints are written to `save_folder` only"},
        Absent{});
  visit(Key{"save_interval", kKept, "Steps between checkpoints; null: only at the end"},
        c.save_interval);
  visit(Key{"save_interval_unsharded", kKept,
            "Steps between checkpoints that save_num_checkpoints_to_keep never deletes"},
        c.save_interval_unsharded);
  visit(Key{"save_interval_ephemeral", kKept,
            "Steps between checkpoints of which only the latest is kept"},
        c.save_interval_ephemeral);
  visit(Key{"save_num_checkpoints_to_keep", kKept, "Checkpoints to keep; -1: all"},
        c.save_num_checkpoints_to_keep);
  visit(Key{"save_num_unsharded_checkpoints_to_keep", kKept,
            "0: save_interval_unsharded saves nothing; else they are kept"},
        c.save_num_unsharded_checkpoints_to_keep);
  visit(Key{"save_overwrite", kPermission, "Replace checkpoints that the run folder holds"},
        c.save_overwrite);
  visit(Key{"save_failures_allowed", kPermission,
            "Saves in a row that may fail, each with a warning, before training ends"},
        c.save_failures_allowed);
  visit(Key{"force_save_unsharded", kNoEffect, kOwnCheckpoints}, Absent{});
  visit(Key{"no_pre_train_checkpoint", kKept, "Save no checkpoint before the first step"},
        c.no_pre_train_checkpoint);
  visit(
      Key{"load_path", kStart,
          "Checkpoint whose weights, moments, counters and place in the data a new run takes over"},
      c.load_path);
  visit(Key{"load_path_sharded_checkpointer", kNoEffect, kOwnCheckpoints}, Absent{});
  visit(Key{"try_load_latest_save", kEnd, "Go on in the run folder, as --resume latest"},
        c.try_load_latest_save);
  visit(Key{"reset_optimizer_state", kNewMoments,
            "Leave the moments of load_path and warm the learning rate up anew, from 0 to what the "
            "schedule says t_warmup later; with reset_trainer_state leave the moments alone"},
        c.reset_optimizer_state);
  visit(Key{"reset_trainer_state", kRestart,
            "Leave the counters of load_path and its place in the data: step 0, and `epoch`"},
        c.reset_trainer_state);
  visit(
      Key{"restore_dataloader", kDataOrder,
          "Go on where load_path stands; false: from step 0 and the first epoch, with its moments"},
      c.restore_dataloader);
  visit(Key{"fast_forward_batches", kDataOrder,
            "Batches to leave out after the place of load_path in the data; null: none"},
        c.fast_forward_batches);
  visit(Key{"sharded_checkpointer", kNoEffect, kOwnCheckpoints}, Absent{});
  visit(Key{"new_style_checkpoints", kNoEffect, kOwnCheckpoints}, Absent{});
  visit(Key{"eval_interval", kKept, "Steps between evaluations; one is made at the end, too"},
        c.eval_interval);
  visit(Key{"eval_on_load", kKept, "Evaluate when a run goes on, before its first step"},
        c.eval_on_load);
  visit(Key{"eval_subset_num_batches", kKept, "Batches of an evaluator; -1: all"},
        c.eval_subset_num_batches);
  visit(Key{"device_eval_batch_size", kKept, "Instances of a batch of an evaluator"},
        c.device_eval_batch_size);
  visit(Key{"evaluators", kKept, "Tasks and token files to evaluate: `label`, `type`, `data`"},
        c.evaluators);
  visit(Key{"wandb", kNoEffect, "the record is a database of the run's own (see `runs`)"},
        Absent{.children = "project entity group name tags log_artifacts rank_zero_only "
                           "log_interval"});
  visit(Key{"speed_monitor", kNoEffect, "speed is recorded for every step"},
        Absent{.children = "window_size gpu_flops_available"});
  visit(Key{"console_log_interval", kNoEffect, "progress is shown by time, not by step"}, Absent{});
  visit(Key{"gen1_gc_interval", kNoEffect, "there is no garbage collector"}, Absent{});
  visit(Key{"compile", kOtherRounding, "there is nothing to compile at run time"},
        Absent{.children = "mode fullgraph backend dynamic"});
  visit(
      Key{"distributed_strategy", kMixedPrecision,
          "How ranks share the work: fsdp shards, ddp keeps whole weights on each rank, single and "
          "null are for one process. With amp_bf16, ddp, single and null keep the residual stream "
          "in "
          "fp32; fsdp does what fsdp.precision says",
          kDistributedStrategies},
      c.distributed_strategy);
  visit(Key{"fsdp", kMixedPrecision, "What FSDP does to the parameters"}, c.fsdp);
  visit(Key{"ddp", kOtherRounding,
            "gradients of each micro-batch are exchanged, all parameters are used"},
        Absent{.children = "grad_sync_mode find_unused_params"});
  visit(Key{"single", kOtherRounding, "`device` of the run decides"}, Absent{.children = "device"});
  visit(Key{"save_data_indices", kNoEffect,
            "the record has a hash of every batch, and `data inspect --step` shows it"},
        Absent{});
  visit(Key{"python_profiling", kNoEffect, "there is no Python"}, Absent{});
  visit(Key{"torch_profiling", kNoEffect, "there is no profiler"}, Absent{});
  visit(Key{"activation_checkpointing", kPlace,
            "Blocks whose activations are computed again instead of kept, or `fine_grained`: the "
            "attention of every block; null: none",
            model::kActivationCheckpointing},
        c.activation_checkpointing);
  visit(Key{"fused_loss", kNumericsRule,
            "OLMo's loss of flash-attn, which always adds the z-loss: true needs "
            "softmax_auxiliary_loss. The loss is computed in one pass with its head either way"},
        c.fused_loss);
  visit(Key{"hf_datasets_cache_dir", kNoEffect, "no data set is fetched while training"}, Absent{});
  visit(Key{"module_outputs_save_steps", kNoEffect, "outputs of modules are not saved"}, Absent{});
  visit(Key{"load_weights", kStart,
            "Start from these weights: a checkpoint, *.safetensors, *.pt or *.bin"},
        c.load_weights);
  visit(Key{"numerics", kNumericsRule,
            "portable: the same bits on every machine; fast: LibTorch's matrix products and "
            "attention",
            kNumerics},
        c.numerics);
  visit(Key{"isa", kHardware, "Widest instruction set to use", kIsas}, c.isa);
  visit(Key{"device", kHardware, "What computes: the CPU or the first GPU", kDevices}, c.device);
  visit(Key{"threads", kHardware, "Threads; 0: every core that the process may use"}, c.threads);
  visit(Key{"hash_interval", kKept, "Steps between hashes of the whole state; 0: none"},
        c.hash_interval);
  visit(
      Key{"trace_interval", kKept,
          "Steps between hashes of every operation's output, beside the first of a start; 0: none"},
      c.trace_interval);
  visit(Key{"allow_eos_mismatch", kPermission,
            "Train although the tokenizer's <|endoftext|> is not model.eos_token_id"},
        c.allow_eos_mismatch);
}

}  // namespace olmo::config
