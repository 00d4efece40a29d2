#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/hash.h"
#include "core/json.h"

namespace olmo::eval {

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
  /// `oe_eval_tasks/` itself.
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
