#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"

namespace olmo::eval {

/// A definition of `evals/`: a task file (`evals/tasks/`) or a suite (`evals/suites/`).
struct DefinitionFile {
  std::string folder;            ///< "tasks" or "suites"
  std::string name;              ///< the file's name without .json
  std::string origin;            ///< as errors name it: a path, or "evals/tasks/NAME.json"
  std::filesystem::path parent;  ///< where it lies; empty if it came with the binary
  JsonValue content;             ///< an object

  /// Its `kind`, which every suite must state: `rank_classification`, `perplexity`.
  [[nodiscard]] std::string kind() const;
};

/// The definitions that the binary carries, with those of `folder` laid over them: a file of the
/// same name takes a definition's place, others are added. Without `folder`, `evals/` of the
/// current directory is taken if there is one. Sorted by folder and name. Throws Error(kUsage)
/// naming a file that is not a JSON object, or a `folder` that does not exist. `suite_files` are
/// laid over all of them, as suites.
std::vector<DefinitionFile> read_definitions(
    const std::optional<std::filesystem::path>& folder,
    std::span<const std::filesystem::path> suite_files = {});

/// The suite of that name and kind. Throws Error(kUsage) naming the nearest one, or the kind that
/// the suite has instead.
const DefinitionFile& find_suite(const std::vector<DefinitionFile>& definitions,
                                 std::string_view name, std::string_view kind);

}  // namespace olmo::eval
