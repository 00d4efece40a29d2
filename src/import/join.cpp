// Several files of one run: their order, what each supersedes of those before it, and the run that
// they make in the database.
#include <algorithm>
#include <array>
#include <set>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/json.h"
#include "import/steps.h"
#include "store/runs/run_db.h"

namespace olmo::import {
namespace {

[[noreturn]] void refuse(const std::string& sentence) { throw Error(ErrorKind::kUsage, sentence); }

std::int64_t first_of(const StepLog& log) { return log.steps.front().position; }
std::int64_t last_of(const StepLog& log) { return log.steps.back().position; }

std::string span_of(const StepLog& log) {
  return log.path + " (" + log.place(first_of(log)) + " to " + log.place(last_of(log)) + ")";
}

/// The same quantity under another run's name.
bool same_loss(const StepLog& a, const StepLog& b) {
  return metric_of(a.columns.find("loss")->second) == metric_of(b.columns.find("loss")->second);
}

void check_alike(const std::vector<StepLog>& logs) {
  std::set<std::string> digests;
  for (const auto& log : logs) {
    if (!digests.insert(log.sha256).second) refuse(log.path + ": is given twice");
    if (!same_loss(log, logs.front()))
      refuse(log.path + ": its loss is " + in_quotes(log.columns.find("loss")->second) +
             ", that of " + logs.front().path + " is " +
             in_quotes(logs.front().columns.find("loss")->second) +
             ": name one that all files have with --map loss=COLUMN");
    if (log.steps_known != logs.front().steps_known)
      refuse((log.steps_known ? logs.front() : log).path +
             ": tells tokens and no step, and others of the files tell steps: say what a step has "
             "with --tokens-per-step");
  }
}

FileOrder sort_logs(std::vector<StepLog>& logs) {
  if (std::all_of(logs.begin(), logs.end(), [](const auto& log) { return log.begin_time; })) {
    std::stable_sort(logs.begin(), logs.end(),
                     [](const auto& a, const auto& b) { return *a.begin_time < *b.begin_time; });
    return FileOrder::kTime;
  }
  std::stable_sort(logs.begin(), logs.end(),
                   [](const auto& a, const auto& b) { return first_of(a) < first_of(b); });
  for (std::size_t i = 1; i < logs.size(); ++i) {
    if (first_of(logs[i]) > first_of(logs[i - 1]) && last_of(logs[i]) >= last_of(logs[i - 1]))
      continue;
    refuse(span_of(logs[i - 1]) + " and " + span_of(logs[i]) +
           ": the steps do not tell which of the two was later: give the files in their order, "
           "with --as-given");
  }
  return FileOrder::kSteps;
}

/// Takes off `earlier` what `later` has trained again.
void supersede(StepLog& earlier, StepLog& later) {
  const std::int64_t first = first_of(later);
  const auto from = std::lower_bound(earlier.steps.begin(), earlier.steps.end(), first,
                                     [](const store::ImportedStepRecord& row,
                                        std::int64_t position) { return row.position < position; });
  const auto count = std::distance(from, earlier.steps.end());
  if (count == 0) return;
  later.restarts.push_back({first,
                            "begins at " + later.place(first) + ": " + std::to_string(count) +
                                (count == 1 ? " row" : " rows") + " of " + earlier.path +
                                ", from " + earlier.place(from->position) + " to " +
                                earlier.place(last_of(earlier)) +
                                (count == 1 ? ", is superseded" : ", are superseded"),
                            /*of_file=*/true});
  earlier.steps.erase(from, earlier.steps.end());
  std::erase_if(earlier.metrics, [&](const auto& metric) { return metric.position >= first; });
}

std::string describe(const StepLog& log, const ImportedRun& run) {
  Json facts = Json::parse(run.machine);
  facts.update({{"imported", true},
                {"format", to_string(log.format)},
                {"columns", log.columns},
                {"steps_known", log.steps_known},
                {"rows_without_loss", log.skipped}});
  if (!log.scales.empty()) facts["scales"] = log.scales;
  if (!log.shifts.empty()) facts["shifts"] = log.shifts;
  if (run.devices) facts["device_count"] = *run.devices;
  if (run.losses.mean) facts[kLossMean] = to_string(*run.losses.mean);
  if (run.losses.span) facts[kLossSpan] = to_string(*run.losses.span);
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

std::string_view to_string(FileOrder order) {
  constexpr std::array<const char*, 3> kWords = {"by the times of their first rows",
                                                 "by their first steps", "as given"};
  return kWords.at(static_cast<std::size_t>(order));
}

FileOrder join_step_logs(std::vector<StepLog>& logs, bool as_given) {
  check_alike(logs);
  const FileOrder order = as_given || logs.size() == 1 ? FileOrder::kGiven : sort_logs(logs);
  for (std::size_t later = 1; later < logs.size(); ++later)
    for (std::size_t earlier = 0; earlier < later; ++earlier)
      if (!logs[earlier].steps.empty()) supersede(logs[earlier], logs[later]);
  return order;
}

std::string write_step_logs(store::RecordDatabase& records, const std::vector<StepLog>& logs,
                            const ImportedRun& run) {
  const store::RunRecord record{.name = run.name,
                                .config = run.config,
                                .experiment_digest = "",
                                .seed = run.seed,
                                .n_parameters = run.n_parameters.value_or(0),
                                .max_steps = run.max_steps.value_or(0)};
  std::vector<store::ImportedFile> files;
  for (const auto& log : logs) files.push_back(file_of(log, run, files.empty()));
  return store::write_imported_run(records, record, std::move(files), run.tags);
}

}  // namespace olmo::import
