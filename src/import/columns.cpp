#include "import/columns.h"

#include <algorithm>
#include <array>

#include <fnmatch.h>

#include "core/error.h"
#include "core/metric_names.h"
#include "core/text/text.h"
#include "import/log.h"

namespace olmo::import {
namespace {

/// OLMo has had one name for both means. Megatron logs the step's loss for TensorBoard, and prints
/// the mean since the last line; Hugging Face and others call either a `train/loss`.
constexpr std::array<LossName, 15> kLossNames = {{
    {metric_names::kLoss, {}, LossSpan::kStep},
    {"train/CE loss", LossMean::kLabels, LossSpan::kStep},
    {"loss_metrics/global_avg_loss", LossMean::kLabels, {}},
    {"ce_loss", {}, {}},
    {"train/loss", LossMean::kLabels, {}},
    {"train/lm_loss", LossMean::kLabels, {}},
    {"lm loss", LossMean::kLabels, LossSpan::kStep},
    {"lm-loss-training/lm loss", LossMean::kLabels, LossSpan::kStep},
    {"lm_loss", {}, {}},
    {"metrics/train/LanguageCrossEntropy", LossMean::kLabels, LossSpan::kStep},
    {"loss/train/total", LossMean::kLabels, LossSpan::kStep},
    {"reduced_train_loss", LossMean::kLabels, LossSpan::kStep},
    {"loss", {}, {}},
    {"train_loss_step", LossMean::kLabels, LossSpan::kStep},
    {"train_loss", {}, {}},
}};

std::vector<std::string_view> names_of_loss() {
  std::vector<std::string_view> names;
  for (const auto& row : kLossNames) names.push_back(row.name);
  return names;
}

/// Names by which OLMo, OLMo-core, torchtitan, Hugging Face, Lightning, NeMo, Megatron (also
/// DeepSpeed's), Composer and TensorBoard log; the best first: a trainer's own step before W&B's
/// _step, which counts calls of wandb.log unless the trainer gave it a step; Hugging Face's loss
/// before its train_loss, the mean at the end. Not here: W&B's _runtime, which counts from the
/// start of the run, and Composer's time/token, which tells the tokens before the step.
const std::vector<std::pair<std::string_view, std::vector<std::string_view>>>& known_names() {
  static const std::vector<std::pair<std::string_view, std::vector<std::string_view>>> kNames = {
      {"step",
       {"trainer/global_step", "train/global_step", "global_step", "step", "iteration", "iter",
        "_step"}},
      {"tokens",
       {metric_names::kTokens, "throughput/total tokens", "n_tokens_seen", "total_tokens",
        "tokens_seen", "num_tokens_seen", "train/num_input_tokens_seen", "num_input_tokens_seen",
        "consumed_tokens", "consumed tokens", "tokens"}},
      {"loss", names_of_loss()},
      {"grad_norm",
       {metric_names::kGradNorm, "optim/total grad norm", "train/grad_norm", "grad_norm",
        "grad norm", "grad-norm", "grad-norm/grad-norm", "gradient_norm", "l2_norm/grad/global"}},
      {"lr",
       {metric_names::kLearningRate, "optim/LR (group 0)", "optim/LR", "train/learning_rate",
        "learning_rate", "learning rate", "learning-rate", "learning-rate/learning-rate", "lr",
        "lr-AdamW", "lr-AdamW/group0", "lr-DecoupledAdamW/group0"}},
      {"tokens_per_second",
       {metric_names::kTokensPerSecond, "throughput/TPS", "throughput/tokens_per_sec",
        "tokens_per_second", "tokens_per_sec"}},
      // torchtitan's tps is of one device, as is whatever OLMo logs under throughput/device.
      {"tokens_per_second_per_device",
       {metric_names::kTokensPerSecondPerDevice, "throughput/device/TPS",
        "throughput/device/tokens_per_sec", "throughput(tps)", "tps",
        "tokens_per_second_per_device", "tokens_per_second_per_gpu", "tokens_per_sec_per_gpu"}},
      {"seconds",
       {metric_names::kSeconds, "time_metrics/end_to_end(s)", "step_time", "iteration-time",
        "iteration-time/iteration-time", "train_step_timing in s",
        "elapsed time per iteration (ms)", "seconds"}},
      {"time", {"_timestamp", "wall time", "wall_time", "timestamp"}},
  };
  return kNames;
}

std::vector<std::string> columns_called(std::string_view name,
                                        const std::vector<std::string>& columns) {
  std::vector<std::string> exact, similar;
  for (const auto& column : columns) {
    if (column == name) exact.push_back(column);
    if (ascii_lower(metric_of(column)) == ascii_lower(name)) similar.push_back(column);
  }
  return exact.empty() ? similar : exact;
}

std::string list_of(const std::vector<std::string>& columns) {
  constexpr std::size_t kMost = 20;
  std::string list;
  for (std::size_t i = 0; i < std::min(columns.size(), kMost); ++i)
    list += (i == 0 ? "" : ", ") + in_quotes(columns[i]);
  if (columns.size() > kMost) list += " and " + std::to_string(columns.size() - kMost) + " more";
  return columns.empty() ? "none" : list;
}

std::string one_of(const std::vector<std::string>& found, std::string_view target,
                   const std::string& file) {
  if (found.size() > 1) {
    throw Error(ErrorKind::kUsage, file + ": both " + in_quotes(found[0]) + " and " +
                                       in_quotes(found[1]) + " may be the " + std::string(target) +
                                       ": choose with --map " + std::string(target) + "=COLUMN");
  }
  return found.front();
}

std::string wanted_column(std::string_view target, const std::string& name,
                          const std::vector<std::string>& columns, const std::string& file) {
  const auto found = columns_called(name, columns);
  if (!found.empty()) return one_of(found, target, file);
  const auto meant = nearest(name, columns);
  throw Error(ErrorKind::kUsage, file + ": has no column " + in_quotes(name) + " for the " +
                                     std::string(target) +
                                     (meant ? " (did you mean " + in_quotes(*meant) + "?)" : "") +
                                     ", it has " + list_of(columns));
}

constexpr std::array<std::string_view, 12> kFolders = {
    "eval", "evals",   "evaluation", "val",        "valid", "validation", "validation_metrics",
    "test", "heldout", "downstream", "perplexity", "device"};
constexpr std::array<std::string_view, 7> kBeginnings = {
    "eval_", "eval-", "val_", "valid_", "validation_", "test_", "downstream_"};
constexpr std::array<std::string_view, 14> kEndings = {
    "_acc", "_acc_norm", "_len_norm", "_pmi_dc", "_bpb",     "_ce_loss",   "_soft_loss",
    "_f1",  "_mcc",      "_em",       "_ppl",    "accuracy", "perplexity", "validation"};

template <typename Names, typename Fits>
bool any(const Names& names, const Fits& fits) {
  return std::any_of(names.begin(), names.end(), fits);
}

}  // namespace

std::span<const LossName> loss_names() { return kLossNames; }

std::string_view metric_of(std::string_view column) {
  constexpr std::string_view kDash = " - ";
  const auto at = column.rfind(kDash);
  return at == column.npos ? column : column.substr(at + kDash.size());
}

ColumnMap parse_column_map(const std::vector<std::string>& texts) {
  ColumnMap map;
  std::vector<std::string> targets(kImportTargets.begin(), kImportTargets.end());
  for (const auto& text : texts) {
    const auto equals = text.find('=');
    const std::string target = text.substr(0, equals);
    if (equals == std::string::npos || equals + 1 == text.size())
      throw Error(ErrorKind::kUsage, "--map must be TARGET=COLUMN, got " + in_quotes(text));
    if (std::find(targets.begin(), targets.end(), target) == targets.end()) {
      const auto meant = nearest(target, targets);
      throw Error(ErrorKind::kUsage,
                  "--map: there is no " + in_quotes(target) +
                      (meant ? " (did you mean " + in_quotes(*meant) + "?)" : "") +
                      ", the targets are " + list_of(targets));
    }
    map[target] = text.substr(equals + 1);
  }
  return map;
}

ColumnMap find_columns(const std::vector<std::string>& columns, const ColumnMap& wanted,
                       const std::string& file) {
  ColumnMap map;
  for (const auto& [target, names] : known_names()) {
    if (const auto found = wanted.find(target); found != wanted.end()) {
      map[std::string(target)] = wanted_column(target, found->second, columns, file);
      continue;
    }
    for (const auto name : names) {
      const auto found = columns_called(name, columns);
      if (found.empty()) continue;
      map[std::string(target)] = one_of(found, target, file);
      break;
    }
  }
  for (const std::string target : {"step", "loss"}) {
    if (map.contains(target) || (target == "step" && map.contains("tokens"))) continue;
    throw Error(ErrorKind::kUsage, file + ": no column has a name known for the " + target +
                                       ", it has " + list_of(columns) + ": name one with --map " +
                                       target + "=COLUMN");
  }
  return map;
}

bool is_metric_name(std::string_view column) {
  const std::string name = ascii_lower(metric_of(column));
  if (name.ends_with("__min") || name.ends_with("__max")) return false;
  for (std::size_t begin = 0, slash = 0; (slash = name.find_first_of("/.", begin)) != name.npos;
       begin = slash + 1) {
    const auto folder = std::string_view(name).substr(begin, slash - begin);
    if (std::find(kFolders.begin(), kFolders.end(), folder) != kFolders.end()) return true;
  }
  return any(kBeginnings, [&](auto beginning) { return name.starts_with(beginning); }) ||
         any(kEndings, [&](auto ending) { return name.ends_with(ending); });
}

bool matches_any(std::string_view column, const std::vector<std::string>& patterns) {
  const std::string whole(column), metric(metric_of(column));
  return any(patterns, [&](const std::string& pattern) {
    return fnmatch(pattern.c_str(), whole.c_str(), 0) == 0 ||
           fnmatch(pattern.c_str(), metric.c_str(), 0) == 0;
  });
}

}  // namespace olmo::import
