// Which column of a log is the loss?
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace olmo::store {

/// The columns of table imported_steps.
inline constexpr std::array<std::string_view, 7> kImportTargets = {
    "step", "tokens", "loss", "grad_norm", "lr", "tokens_per_second", "seconds"};

/// Target -> name of the log's column.
using ColumnMap = std::map<std::string, std::string, std::less<>>;

/// `TARGET=COLUMN` of the command line. Throws Error(kUsage).
ColumnMap parse_column_map(const std::vector<std::string>& texts);

/// Finds the columns for all targets among those of `file`: what `wanted` names, else the first
/// known name that is there; a W&B export's `RUN - ` before a name is looked over. Throws
/// Error(kUsage) for a wanted column that is missing, for several that fit, and if step or loss
/// stay unknown.
ColumnMap find_columns(const std::vector<std::string>& columns, const ColumnMap& wanted,
                       const std::string& file);

}  // namespace olmo::store
