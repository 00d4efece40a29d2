#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "eval/evaluation_files.h"
#include "eval/task.h"

namespace olmo::eval {

class DataFiles;

/// The kind of a suite that lists tasks.
inline constexpr std::string_view kSuiteKind = "rank_classification";

/// A task as lists show it.
struct TaskSummary {
  std::string name;
  std::string description;
  std::string category;
  std::vector<std::string> aliases;
  std::vector<std::string> conventions;  ///< that NAME can be asked in
  std::vector<std::string> variants;     ///< asked as NAME:VARIANT or NAME_VARIANT
};

struct SuiteSummary {
  std::string name;
  std::string kind;  ///< rank_classification, perplexity
  std::string description;
  std::vector<std::string> tasks;  ///< of a rank_classification suite
};

/// Every task and suite, by name. A name means one thing only.
class TaskCatalog {
 public:
  /// Throws Error(kUsage) naming file and key for a definition that is not of the form that
  /// evals/README.md describes, and for names that are taken twice.
  explicit TaskCatalog(std::vector<DefinitionFile> definitions);

  [[nodiscard]] std::vector<TaskSummary> tasks() const;
  [[nodiscard]] std::vector<SuiteSummary> suites() const;
  /// The definition of a perplexity suite; null if no suite of that kind has this name.
  [[nodiscard]] const DefinitionFile* perplexity_suite(std::string_view name) const;

  /// Tasks of the given names, each a task, a variant, one of OLMo's evaluator labels (any of them
  /// with `_bpb`: the right answers alone), or a suite of kind rank_classification, in order and
  /// without duplicates. `convention` (olmo, oe, lm-eval) says what a plain task name means;
  /// variants have their own. `data_folder` is what `olmo-harness data fetch` made; its files are
  /// checked against its manifest (size and SHA-256).
  ///
  /// Throws Error(kUsage) for an unknown name (naming the nearest), for an unknown convention or
  /// one that the task does not have, and Error(kInput) for data files that are missing or were
  /// altered.
  [[nodiscard]] std::vector<Task> resolve(std::span<const std::string> names,
                                          std::string_view convention,
                                          const std::filesystem::path& data_folder) const;

 private:
  struct Target {
    std::string task;        ///< empty: the name is a suite's
    std::string variant;     ///< empty: the convention's own
    std::string convention;  ///< empty: as asked for
  };
  /// A task of a file with several has its parameters laid over the file's keys.
  struct Entry {
    std::string origin;
    std::filesystem::path parent;
    JsonValue keys;
  };

  void add_task(const std::string& name, Entry entry);
  void add_name(const std::string& name, const Target& target, const std::string& origin);
  /// `answers_only`: the name ends in `_bpb`.
  [[nodiscard]] Target find(const std::string& name, bool& answers_only) const;
  [[nodiscard]] Task resolve_one(const std::string& name, std::string_view convention,
                                 DataFiles& data_files) const;

  std::vector<DefinitionFile> definitions_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, Target> names_;
};

/// The catalog of the binary's definitions, those of `folder` and `suite_files` (see
/// read_definitions).
TaskCatalog load_catalog(const std::optional<std::filesystem::path>& folder = std::nullopt,
                         std::span<const std::filesystem::path> suite_files = {});

}  // namespace olmo::eval
