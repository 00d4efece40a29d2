// What was asked in the instances of a recorded evaluation. A record holds hashes of the requests
// and no texts, so texts are rendered again from the task's data.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "core/evaluation_rows.h"
#include "eval/task_catalog.h"

namespace olmo::eval {

/// The instances of a task of that name and convention up to `limit`. Throws as
/// TaskCatalog::resolve and load_task, where data are missing or were altered.
LoadedTask render_again(const TaskCatalog& catalog, const std::string& task,
                        const std::string& convention, const std::filesystem::path& data_folder,
                        std::optional<std::int64_t> limit = std::nullopt);

/// The instance with this number; null: the data have none.
const Example* find_example(const LoadedTask& task, std::int64_t doc_id);

/// Whether a rendered instance is the text that the rows were scored for: data or definition of the
/// task may have changed since.
bool was_asked(const Example& example, std::span<const OptionRow> rows);

}  // namespace olmo::eval
