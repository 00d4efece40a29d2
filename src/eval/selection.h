// What is to be evaluated, found by the names that a command line or a config gives: tasks with
// their data, perplexity suites with their files, and what of them is not on this machine.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "eval/perplexity_suite.h"
#include "eval/task.h"
#include "eval/task_catalog.h"

namespace olmo::eval {

struct SelectionOptions {
  std::string convention = "olmo";               ///< what a plain task name means
  std::filesystem::path task_data = {};          ///< what `olmo-harness data fetch` made
  std::vector<std::filesystem::path> data = {};  ///< where suites are looked for first
  std::optional<bool> refuse_missing = {};       ///< else as each suite's definition says
};

struct Selection {
  std::vector<Task> tasks;
  std::vector<PerplexitySuite> suites;
  std::map<std::string, std::vector<MissingSource>> missing;  ///< by suite

  /// Takes a suite unless it has no source.
  void add(ResolvedSuite resolved);
  /// A sentence for each source that was left out.
  [[nodiscard]] std::vector<std::string> notes() const;
};

/// Of tasks and suites, by which their scores are recorded.
std::vector<std::string> names_of(std::span<const Task> tasks,
                                  std::span<const PerplexitySuite> suites);
/// Throws Error(kUsage) for a name that is there twice.
void require_distinct(std::vector<std::string> names);

/// Tasks, suites of tasks and perplexity suites by name. A name that ends in `.json` is one of the
/// suite files that `catalog` was loaded with. Besides the folders of `options`, a perplexity suite
/// is looked for beside its definition, in `evals/` and in the current folder; the texts of
/// `sample` come with the program where none of these has them. Throws as TaskCatalog::resolve()
/// and resolve_suite() do.
Selection select(const TaskCatalog& catalog, std::span<const std::string> names,
                 const SelectionOptions& options);

}  // namespace olmo::eval
