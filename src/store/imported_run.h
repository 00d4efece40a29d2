// Runs of other trainers, written whole (import/steps.h reads their logs).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/record_database.h"
#include "store/run_records.h"

namespace olmo::store {

/// What one of the run's log files told: an attempt.
struct ImportedFile {
  AttemptRecord attempt;
  InputRecord log;
  std::span<const ImportedStepRecord> steps;
  std::vector<MetricRecord> metrics;
  std::vector<EventRecord> events;
};

/// Writes the run in one transaction and returns its id. Ids, numbers of the attempts, times and
/// `status` are set here.
std::string write_imported_run(RecordDatabase& records, RunRecord run,
                               std::vector<ImportedFile> files,
                               const std::vector<std::string>& tags);

/// The latest run to which a log with this digest was imported.
std::optional<std::string> find_imported_run(const RecordDatabase& records,
                                             const std::string& sha256);

}  // namespace olmo::store
