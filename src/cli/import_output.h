// What `runs import` says of the logs that it has read.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "import/steps.h"

namespace olmo::cli {

/// Which column was taken as what, which are kept as metrics, which are ignored: lines of at most
/// 80 columns for people.
std::string mapping_text(const import::StepLog& log);
/// The same with every name.
nlohmann::ordered_json mapping_json(const import::StepLog& log);

/// What a reader of the run has to know: what is unknown, left out or superseded. One sentence
/// each.
std::vector<std::string> import_notes(const std::vector<import::StepLog>& logs,
                                      const import::StepLogOptions& options,
                                      import::FileOrder order);

}  // namespace olmo::cli
