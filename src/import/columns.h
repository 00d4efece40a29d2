// Which column of a log is the loss, and which are kept as metrics of the run?
#pragma once

#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/loss_mean.h"

namespace olmo::import {

/// The columns of table imported_steps, and the time (Unix seconds), by which several files of a
/// run are put in order.
inline constexpr std::array<std::string_view, 9> kImportTargets = {
    "step",    "tokens",
    "loss",    "grad_norm",
    "lr",      "tokens_per_second",
    "seconds", "tokens_per_second_per_device",
    "time"};

/// Target -> name of the log's column.
using ColumnMap = std::map<std::string, std::string, std::less<>>;

/// `TARGET=COLUMN` of the command line. Throws Error(kUsage).
ColumnMap parse_column_map(const std::vector<std::string>& texts);

/// What a W&B export calls `RUN - METRIC` is METRIC; other names stay.
std::string_view metric_of(std::string_view column);

/// A name by which trainers log the loss of a step, and what it tells of that. Nothing: trainers
/// that mean other things have it.
struct LossName {
  std::string_view name;
  std::optional<LossMean> mean;
  std::optional<LossSpan> span;
};
/// The best first.
std::span<const LossName> loss_names();

/// Finds the columns for all targets among those of `file`: what `wanted` names, else the first
/// known name that is there; a W&B export's `RUN - ` before a name is looked over. Throws
/// Error(kUsage) for a wanted column that is missing, for several that fit, and if the loss, or
/// both step and tokens, stay unknown.
ColumnMap find_columns(const std::vector<std::string>& columns, const ColumnMap& wanted,
                       const std::string& file);

/// True for the results of evaluations, by the names of OLMo (`eval/downstream/arc_easy_acc`,
/// `eval/perplexity/c4/CrossEntropyLoss`), OLMo-core, torchtitan (`validation_metrics/loss`),
/// Hugging Face (`eval_loss`), Lightning (`val/loss`) and Megatron (`lm loss validation`), for
/// tasks' metrics by themselves (`arc_easy_len_norm`), and for what is told of one device. Not for
/// the smallest and largest values that W&B exports beside a metric (`…__MIN`).
bool is_metric_name(std::string_view column);

/// True if one of the patterns (`*` and `?` as in the shell) is the name, or the name without W&B's
/// `RUN - `.
bool matches_any(std::string_view column, const std::vector<std::string>& patterns);

}  // namespace olmo::import
