#include "import/loss_mean.h"

#include <algorithm>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "core/metric_names.h"

namespace olmo::import {
namespace {

/// What the name tells; nothing: it is not known.
LossName told_by_name(const StepLog& log) {
  const std::string_view loss = metric_of(log.columns.at("loss"));
  const auto found = std::ranges::find(loss_names(), loss, &LossName::name);
  return found == loss_names().end() ? LossName{loss, {}, {}} : *found;
}

bool has_column(const StepLog& log, std::string_view name) {
  const auto is_it = [&](const std::string& column) { return metric_of(column) == name; };
  return std::ranges::any_of(log.columns, [&](const auto& entry) { return is_it(entry.second); }) ||
         std::ranges::any_of(log.ignored, is_it) || std::ranges::any_of(log.metric_names, is_it);
}

/// By the names that its trainer logs together.
bool is_of_hugging_face(const StepLog& log) {
  const std::string_view loss = metric_of(log.columns.at("loss"));
  if (loss != "loss" && loss != "train/loss") return false;
  const std::string folder(loss.substr(0, loss.size() - std::string_view("loss").size()));
  return has_column(log, folder + "epoch") && has_column(log, folder + "learning_rate");
}

/// OLMo's config as its trainer gives it to W&B states every key, so that one which is not there is
/// one that the version does not have. `python_profiling` has been there from the first on, and
/// nobody writes it by hand.
std::optional<LossMean> by_version(const std::string& config) {
  const auto keys = config.empty() ? nlohmann::json() : nlohmann::json::parse(config);
  if (keys.contains("distributed_strategy")) return LossMean::kTokens;
  return keys.contains("python_profiling") ? std::optional(LossMean::kLabels) : std::nullopt;
}

}  // namespace

std::optional<LossMean> loss_mean_of(const StepLog& log, const std::string& config) {
  const LossName told = told_by_name(log);
  if (told.name == metric_names::kLoss)
    return has_column(log, metric_names::kLossPerLabel) ? LossMean::kTokens : by_version(config);
  if (log.format == LogFormat::kTorchtitan || is_of_hugging_face(log)) return LossMean::kLabels;
  return told.mean;
}

std::optional<LossSpan> loss_span_of(const StepLog& log) {
  const LossName told = told_by_name(log);
  const bool is_console_of_megatron = log.format == LogFormat::kMegatron && told.name == "lm loss";
  if (is_console_of_megatron || is_of_hugging_face(log)) return LossSpan::kInterval;
  return told.span;
}

}  // namespace olmo::import
