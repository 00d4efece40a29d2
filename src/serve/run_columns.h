// The columns of the table of runs: what each shows, and by what it is sorted.
#pragma once

#include <span>
#include <string>
#include <variant>

#include "serve/catalog.h"

namespace olmo::serve {

/// By what a column is sorted; nothing: comes last, whichever the direction.
using SortValue = std::variant<std::monostate, double, std::string>;

struct RunColumn {
  const char* id;  ///< in the address
  const char* title;
  bool number;    ///< set flush right, and sorted from the highest at first
  bool at_first;  ///< shown where the address names no columns
  std::string (*html)(const RunEntry& run);
  SortValue (*value)(const RunEntry& run);
};

std::span<const RunColumn> run_columns();
/// Nothing for other names.
const RunColumn* run_column(const std::string& id);

/// The coloured word for a run's state.
std::string state_html(const RunEntry& run);
/// A mark of a record that is not sound, with the reason under the pointer; empty: it is.
std::string record_html(const RunEntry& run);
/// Of the last step.
std::string loss_html(const RunEntry& run, int digits);
/// "2026-01-31 23:59" of a recorded time; what is no time is shown as it is.
std::string short_time(const std::string& utc);

}  // namespace olmo::serve
