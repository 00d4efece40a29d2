#include "eval/selection.h"

#include <algorithm>

#include "core/error.h"
#include "eval/embedded_samples.h"

namespace olmo::eval {
namespace {

namespace fs = std::filesystem;

bool comes_with_program(const SuiteDefinition& definition) {
  const std::string below = definition.folder + "/";
  return std::ranges::any_of(embedded_samples(), [&](const EmbeddedSample& sample) {
    return sample.path.starts_with(below);
  });
}

ResolvedSuite find_files(const DefinitionFile& file, const SelectionOptions& options) {
  const auto definition = parse_suite_definition(file.name, *file.content, file.origin);
  std::vector<fs::path> folders = options.data;
  for (const fs::path& folder :
       {file.parent, file.parent.parent_path(), fs::path("evals"), fs::path(".")})
    folders.push_back(folder);
  const bool is_here = std::ranges::any_of(
      folders, [&](const fs::path& folder) { return fs::exists(folder / definition.folder); });
  if (!is_here && comes_with_program(definition)) folders.push_back(unpacked_samples());
  return resolve_suite(definition, folders,
                       options.refuse_missing.value_or(definition.refuse_missing));
}

}  // namespace

void Selection::add(ResolvedSuite resolved) {
  if (!resolved.missing.empty()) missing[resolved.suite.name] = std::move(resolved.missing);
  if (!resolved.suite.sources.empty()) suites.push_back(std::move(resolved.suite));
}

std::vector<std::string> Selection::notes() const {
  std::vector<std::string> sentences;
  for (const auto& [suite, sources] : missing) {
    for (const auto& source : sources)
      sentences.push_back(suite + ": " + source.name + " is left out: " + source.path +
                          " is not here" + (source.get.empty() ? "" : "; " + source.get));
  }
  return sentences;
}

std::vector<std::string> names_of(std::span<const Task> tasks,
                                  std::span<const PerplexitySuite> suites) {
  std::vector<std::string> names;
  for (const Task& task : tasks) names.push_back(task.name);
  for (const PerplexitySuite& suite : suites) names.push_back(suite.name);
  return names;
}

void require_distinct(std::vector<std::string> names) {
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice != names.end())
    throw Error(ErrorKind::kUsage, *twice +
                                       ": is asked for twice, and scores are recorded by name: "
                                       "leave one out, or give it another name");
}

Selection select(const TaskCatalog& catalog, std::span<const std::string> names,
                 const SelectionOptions& options) {
  Selection selection;
  std::vector<std::string> tasks;
  for (const auto& given : names) {
    const std::string name = given.ends_with(".json") ? fs::path(given).stem().string() : given;
    if (const auto* suite = catalog.perplexity_suite(name)) {
      selection.add(find_files(*suite, options));
    } else {
      tasks.push_back(name);
    }
  }
  if (!tasks.empty())
    selection.tasks = catalog.resolve(tasks, options.convention, options.task_data);
  return selection;
}

}  // namespace olmo::eval
