// What was asked in the instances that a parity report lists as flips. Records hold hashes of the
// requests and no texts, so the texts are rendered again from the task's data.
#include <map>

#include "cli/eval_records.h"
#include "core/error.h"
#include "core/process/terminal.h"
#include "eval/asked.h"
#include "eval/task_catalog.h"
#include "report/evaluations/evaluation_match.h"
#include "report/parity.h"

namespace olmo::cli {
namespace {

/// Fills in the flips of one task, by doc_id. Throws Error for data that are missing, or are others
/// than those that were asked.
void add_texts(const report::EvaluatedTask& recorded, const eval::TaskCatalog& catalog,
               const std::filesystem::path& data,
               const std::map<std::int64_t, report::Flip*>& flips) {
  const auto loaded = eval::render_again(catalog, recorded.task, recorded.convention, data,
                                         flips.rbegin()->first + 1);
  if (loaded.task.definition_digest.hex() != recorded.definition_digest ||
      loaded.task.data_digest.hex() != recorded.data_digest)
    throw Error(ErrorKind::kInput, recorded.task + ": definition or data are others than recorded");
  for (const auto& example : loaded.examples) {
    const auto found = flips.find(example.doc_id);
    if (found == flips.end() || example.options.empty()) continue;
    found->second->context = example.options.front().context;
    for (const auto& option : example.options)
      found->second->continuations.push_back(option.continuation);
  }
}

}  // namespace

void add_flip_texts(report::ParityReport& report, const std::string& data) {
  if (!report.tasks || !report.a.evaluation || report.tasks->flips.empty()) return;
  std::map<std::string, std::map<std::int64_t, report::Flip*>> by_task;
  for (report::Flip& flip : report.tasks->flips) by_task[flip.task][flip.doc_id] = &flip;
  const auto catalog = eval::load_catalog(std::nullopt);
  const auto folder = task_data_folder(data);
  for (const auto& [name, flips] : by_task) {
    const auto* recorded = report::find_task(*report.a.evaluation, name);
    if (recorded == nullptr) continue;
    try {
      add_texts(*recorded, catalog, folder, flips);
    } catch (const Error& error) {
      log_line("the page shows no prompts of " + name + ": " + error.what());
    }
  }
}

}  // namespace olmo::cli
