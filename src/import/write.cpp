// An imported run in the database.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/json.h"
#include "import/steps.h"
#include "store/imported_run.h"

namespace olmo::import {
namespace {

using Json = nlohmann::json;

std::string describe(const StepLog& log, const ImportedRun& run) {
  Json facts = Json::parse(run.machine);
  facts.update({{"imported", true},
                {"format", to_string(log.format)},
                {"columns", log.columns},
                {"steps_known", log.steps_known},
                {"rows_without_loss", log.skipped}});
  if (!log.scales.empty()) facts["scales"] = log.scales;
  if (run.devices) facts["device_count"] = *run.devices;
  return json_text(facts);
}

store::ImportedFile file_of(const StepLog& log, const ImportedRun& run, bool first) {
  store::ImportedFile file;
  if (!first && log.steps_known && !log.steps.empty())
    file.attempt.start_step = std::max<std::int64_t>(0, log.steps[0].position - 1);
  file.attempt.command_line = run.command_line;
  file.attempt.policy = file.attempt.build = "{}";
  file.attempt.environment = describe(log, run);
  file.log = {"log", log.path, log.bytes, log.sha256};
  file.steps = log.steps;
  for (const auto& metric : log.metrics)
    file.metrics.push_back(
        {.step = metric.position, .name = log.metric_names[metric.name], .value = metric.value});
  for (const auto& restart : log.restarts) {
    file.events.push_back({.step = restart.position,
                           .utc = {},
                           .kind = restart.of_file ? "resume" : "restart",
                           .message = restart.message});
  }
  return file;
}

}  // namespace

std::string write_step_logs(store::RecordDatabase& records, const std::vector<StepLog>& logs,
                            const ImportedRun& run) {
  store::RunRecord record{
      .name = run.name, .config = run.config, .experiment_digest = "", .seed = run.seed};
  std::vector<store::ImportedFile> files;
  for (const auto& log : logs) {
    files.push_back(file_of(log, run, files.empty()));
    if (!log.steps.empty()) record.max_steps = log.steps.back().step.value_or(record.max_steps);
  }
  return store::write_imported_run(records, record, std::move(files), run.tags);
}

}  // namespace olmo::import
