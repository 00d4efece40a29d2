// What is wrong with a config: the rooms' own checks of their parts, and what concerns several.
#include <algorithm>
#include <set>

#include "config/schedule.h"
#include "config/train_config.h"
#include "core/compute/policy.h"
#include "core/text/text.h"
#include "model/recomputation.h"
#include "model/units.h"
#include "optim/lr_schedule.h"

namespace olmo::config {
namespace {

// Far beyond any run, and low enough that products of three of these stay below 2^63.
constexpr std::int64_t kMaxBatch = 1 << 24;
constexpr std::int64_t kMaxRanks = 1 << 20;
constexpr std::int64_t kMaxBatches = std::int64_t{1} << 32;  // an epoch has fewer instances
constexpr std::int64_t kMaxInterval = std::int64_t{1} << 40;

double real(std::int64_t value) { return static_cast<double>(value); }

void check_parts(ConfigChecks& checks, const TrainConfig& config) {
  checks.append(model::problems_of(config.model));
  checks.append(optim::problems_of(config.optimizer));
  checks.append(optim::problems_of(config.scheduler, config.optimizer.learning_rate));
  checks.append(optim::problems_of(config.clip_limits()));
  checks.append(data::problems_of(config.data));
}

bool is_too_narrow(const data::DataConfig& data, const model::ModelConfig& model) {
  return data.memmap_dtype == "uint16" && model.vocab_size > 65536;
}

std::string too_narrow(const model::ModelConfig& model) {
  return "is uint16, which cannot hold the ids of `model.vocab_size` " +
         std::to_string(model.vocab_size) + ": expected uint32";
}

void check_batch(ConfigChecks& checks, const TrainConfig& config) {
  const auto& model = config.model;
  checks.expect(model.max_sequence_length != 1, "model.max_sequence_length",
                "must be above 1: the last token of a sequence has no label, got 1");
  checks.expect(!is_too_narrow(config.data, model), "data.memmap_dtype", too_narrow(model));
  checks.between("global_train_batch_size", config.global_train_batch_size, 1, kMaxBatch);
  checks.between("device_train_microbatch_size", config.device_train_microbatch_size, 1, kMaxBatch);
  checks.between("device_eval_batch_size", config.device_eval_batch_size, 1, kMaxBatch);
}

/// Sizes whose products would not fit into 64 bits are mistakes, and are told before anything
/// multiplies them.
void check_products(ConfigChecks& checks, const TrainConfig& config) {
  const auto& model = config.model;
  const double micro = real(config.micro_batch()) * real(model.max_sequence_length);
  const double width = 16 * real(model.d_model) + 2 * (real(model.mlp_ratio) * real(model.d_model) +
                                                       real(model.mlp_hidden_size.value_or(0)));
  checks.expect(micro * width * real(model.n_layers) < 0x1p56, "device_train_microbatch_size",
                "times the model's size is beyond any memory, got " +
                    std::to_string(config.device_train_microbatch_size));
  const auto& duration = config.max_duration;
  const bool steps = duration.unit == optim::Duration::Unit::kSteps;
  const bool epochs = duration.unit == optim::Duration::Unit::kEpochs;
  const double tokens =
      real(duration.value) *
      (steps ? real(config.global_train_batch_size) * real(model.max_sequence_length) : 1);
  checks.expect(tokens < (epochs ? 0x1p20 : 0x1p62), "max_duration",
                "is beyond any run, got " + std::to_string(duration.value));
}

/// A schedule that has come down to 0 before the first step would train nothing and say nothing.
void check_first_rate(ConfigChecks& checks, const TrainConfig& config) {
  if (config.max_duration.unit == optim::Duration::Unit::kEpochs) return;  // the end is not known
  const auto first = progress_at(config, {1, config.tokens_per_step()}, 0);
  const double rate = learning_rate_of(config, first, 0);
  if (static_cast<float>(rate) > 0 || config.max_duration.value == 0) return;
  checks.add(config.scheduler.t_max ? "scheduler.t_max" : "scheduler.alpha_f",
             "gives every step the learning rate 0: `" + config.scheduler.name +
                 "` has come to its end, `scheduler.alpha_f` " +
                 number_text(config.scheduler.alpha_f) + " of the rate, with the first step");
}

/// Why a precision cannot be run; null if it can.
const char* refusal_of(Precision precision) {
  switch (precision) {
    case Precision::kAmpFp16:
      return "small gradients would become 0 in fp16, since OLMo does not scale its loss";
    case Precision::kPureBf16:
      return "weights in bf16 have too few digits to keep the updates of a training";
    case Precision::kFp32:
    case Precision::kAmpBf16:
      return nullptr;
  }
  return nullptr;
}

void check_precision(ConfigChecks& checks, const TrainConfig& config) {
  if (const char* reason = refusal_of(config.precision)) {
    checks.add_unsupported("precision", "is `" + to_string(config.precision) +
                                            "`, which is not supported (" + reason +
                                            "): give precision=" + to_string(Precision::kAmpBf16) +
                                            " or precision=" + to_string(Precision::kFp32));
  }
  if (config.distributed_strategy)
    checks.one_of("distributed_strategy", *config.distributed_strategy, kDistributedStrategies);
  const auto casts = config.fsdp ? config.fsdp->precision : std::nullopt;
  if (casts) checks.one_of("fsdp.precision", *casts, kFsdpPrecisions);
  if (config.rounds_under_fsdp() && !config.fsdp) {
    checks.add_unsupported("fsdp",
                           "is null, with which OLMo's FSDP does not start: give "
                           "fsdp.precision=mixed or distributed_strategy=single");
  }
  if (config.rounds_under_fsdp() && casts == "pure") {
    checks.add_unsupported("fsdp.precision",
                           "is `pure`, which adds the gradients of the processes in bf16, so that "
                           "their number changes the result: give fsdp.precision=mixed");
  }
  checks.append(model::problems_of(config.model, config.mixed_precision()));
}

void check_sharding(ConfigChecks& checks, const TrainConfig& config) {
  if (!config.fsdp) return;
  const FsdpConfig& fsdp = *config.fsdp;
  checks.one_of("fsdp.sharding_strategy", fsdp.sharding_strategy, kShardingStrategies);
  checks.append(
      model::problems_of_wrapping(config.model, fsdp.wrapping_strategy, "fsdp.wrapping_strategy"));
  checks.between("fsdp.hybrid_sharding_num_model_replicas", fsdp.hybrid_sharding_num_model_replicas,
                 1, kMaxRanks);
}

/// flash-attn's loss holds the z-loss, and so do its gradients, whether OLMo asks for one or not
/// (olmo/train.py, fused_loss_fn: `lse_square_scale`).
void check_z_loss(ConfigChecks& checks, const TrainConfig& config) {
  if (config.auxiliary_loss_multiplier) {
    checks.at_least("auxiliary_loss_multiplier", *config.auxiliary_loss_multiplier, 0);
  } else if (config.softmax_auxiliary_loss) {
    checks.add("auxiliary_loss_multiplier",
               "must be a number if `softmax_auxiliary_loss` is set, got null");
  }
  if (config.fused_loss.value_or(false) && !config.softmax_auxiliary_loss) {
    checks.add_unsupported(
        "fused_loss",
        "is true without `softmax_auxiliary_loss`: there OLMo trains with a z-loss all the same. "
        "Give softmax_auxiliary_loss=true to train so, or fused_loss=false to train without");
  }
}

void check_loop(ConfigChecks& checks, const TrainConfig& config) {
  checks.between("epoch", config.epoch, 0, kMaxInterval);
  checks.between("fast_forward_batches", config.fast_forward_batches, 0, kMaxBatches);
  checks.between("stop_at", config.stop_at, 1, kMaxInterval);
  checks.between("stop_after", config.stop_after, 1, kMaxInterval);
  if (config.time_limit) checks.at_least("time_limit", *config.time_limit, 0);
  checks.positive("early_stopping_factor", config.early_stopping_factor);
  if (config.load_path && config.load_weights)
    checks.add("load_weights", "and `load_path` exclude each other, got both");
}

void check_saving(ConfigChecks& checks, const TrainConfig& config) {
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
  checks.between("threads", config.threads, 0, kMostThreads);
  checks.one_of("numerics", config.numerics, kNumerics);
  checks.one_of("isa", config.isa, kIsas);
  checks.one_of("device", config.device, kDevices);
  if (config.activation_checkpointing) {
    checks.one_of("activation_checkpointing", *config.activation_checkpointing,
                  model::kActivationCheckpointing);
  }
  checks.expect(config.run_name != "", "run_name", "must be a name or null, got an empty text");
  checks.expect(!config.save_folder.empty(), "save_folder",
                "must name a folder, got an empty text");
}

/// The token files of an evaluator. What OLMo would mask of them is not masked here.
void check_evaluator_data(ConfigChecks& checks, const std::string& path,
                          const data::DataConfig& data, const model::ModelConfig& model) {
  const auto unsupported = [&](const char* key, const std::string& value) {
    checks.add_unsupported(key,
                           "is not supported in an evaluator: give " + path + key + "=" + value);
  };
  checks.one_of("data.memmap_dtype", data.memmap_dtype, data::kMemmapDtypes);
  if (is_too_narrow(data, model)) checks.add_unsupported("data.memmap_dtype", too_narrow(model));
  if (data.files().empty())
    checks.add("data",
               "names no token files in `paths` or `datasets`, which `type: lm` evaluates; a task "
               "has `type: downstream`");
  if (!data.paths.empty() && !data.datasets.empty())
    checks.add_unsupported("data.paths", "and `data.datasets` exclude each other, got both");
  if (!data.label_mask_paths.empty()) unsupported("data.label_mask_paths", "null");
  if (data.instance_filter) unsupported("data.instance_filter", "null");
  if (data.generate_doc_lengths) unsupported("data.generate_doc_lengths", "false");
  if (!data.shuffle) unsupported("data.shuffle", "true");
}

/// What scores of evaluators are recorded by. OLMo's trainer lets the later of two with one name
/// stand; here each is recorded.
class EvaluatorNames {
 public:
  void check(ConfigChecks& checks, const EvaluatorConfig& evaluator) {
    const std::string& label = evaluator.label;
    if (!labels_.insert(label).second) {
      checks.add_unsupported("label",
                             "is that of an evaluator before it, and scores are recorded "
                             "by label: give another than `" +
                                 label + "`");
    } else if (evaluator.type == "lm") {
      if (evaluator.data.datasets.empty()) check_set(checks, "label", label);
      for (const auto& [name, files] : evaluator.data.datasets)
        check_set(checks, "data.datasets." + name, name);
    }
  }

 private:
  void check_set(ConfigChecks& checks, const std::string& key, const std::string& name) {
    if (!sets_.insert(name).second)
      checks.add_unsupported(key,
                             "names data as an evaluator before it does, and metrics are "
                             "eval/NAME/…: give another name than `" +
                                 name + "`");
  }

  std::set<std::string> labels_, sets_;
};

void check_local(ConfigChecks& checks, const char* key, const std::optional<std::string>& path) {
  if (!path || path->find("://") == std::string::npos) return;
  checks.add_unsupported(
      key, "is the URL " + *path + "; give a local path: " + std::string(key) + "=PATH");
}

}  // namespace

std::vector<ConfigProblem> validate(const TrainConfig& config) {
  ConfigChecks checks;
  check_parts(checks, config);
  check_batch(checks, config);
  check_precision(checks, config);
  check_sharding(checks, config);
  check_products(checks, config);
  check_z_loss(checks, config);
  check_loop(checks, config);
  check_saving(checks, config);
  check_local(checks, "save_folder", config.save_folder);
  check_local(checks, "load_path", config.load_path);
  check_local(checks, "load_weights", config.load_weights);
  auto problems = checks.take();
  const bool numbers_hold = std::all_of(problems.begin(), problems.end(),
                                        [](const auto& problem) { return problem.blocks_start; });
  if (!numbers_hold) return problems;
  check_first_rate(checks, config);  // computes with them
  for (auto& problem : checks.take()) problems.push_back(std::move(problem));
  return problems;
}

std::vector<ConfigProblem> problems_of(const std::vector<EvaluatorConfig>& evaluators,
                                       const model::ModelConfig& model) {
  ConfigChecks all;
  EvaluatorNames names;
  for (std::size_t i = 0; i < evaluators.size(); ++i) {
    const EvaluatorConfig& evaluator = evaluators[i];
    const auto path = "evaluators." + std::to_string(i) + ".";
    ConfigChecks checks(path);
    checks.expect(!evaluator.label.empty(), "label", "must be a name, got an empty text");
    checks.one_of("type", evaluator.type, kEvaluatorTypes);
    checks.between("device_eval_batch_size", evaluator.device_eval_batch_size, 0, kMaxBatch);
    checks.between("subset_num_batches", evaluator.subset_num_batches, -1, kMaxInterval);
    if (evaluator.type == "lm") check_evaluator_data(checks, path, evaluator.data, model);
    if (!evaluator.label.empty()) names.check(checks, evaluator);
    all.append(checks.take());
  }
  return all.take();
}

}  // namespace olmo::config
