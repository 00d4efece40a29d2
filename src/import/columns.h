// Which column of a log is the loss?
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

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

/// Finds the columns for all targets among those of `file`: what `wanted` names, else the first
/// known name that is there; a W&B export's `RUN - ` before a name is looked over. Throws
/// Error(kUsage) for a wanted column that is missing, for several that fit, and if the loss, or
/// both step and tokens, stay unknown.
ColumnMap find_columns(const std::vector<std::string>& columns, const ColumnMap& wanted,
                       const std::string& file);

}  // namespace olmo::import
