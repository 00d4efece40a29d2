// Rows of the database as `runs list`, `runs show` and `runs export` print them.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "store/run_overview.h"

namespace olmo::cli {

/// The members by their names, tags in one text; null for what is not known.
nlohmann::ordered_json overview_json(const store::RunOverview& run);

/// A row of named values.
nlohmann::ordered_json row_json(const std::vector<std::string>& names,
                                const std::vector<store::SqlValue>& values);

}  // namespace olmo::cli
