// Another trainer's log of losses as a run of ours (`olmo-harness runs import`).
#pragma once

#include <filesystem>
#include <optional>

#include "store/import_columns.h"
#include "store/import_log.h"
#include "store/run_db.h"

namespace olmo::store {

/// A row of table imported_steps; what is absent is unknown or not finite.
struct ImportedStep {
  std::int64_t step = 0;
  std::optional<std::int64_t> tokens;  ///< seen so far
  std::optional<double> loss;          ///< nats
  std::optional<double> grad_norm, lr, tokens_per_second, seconds;
};

/// Where a log goes back (or stays where it was).
struct LogRestart {
  std::int64_t step = 0;  ///< at which it goes on
  std::string message;
};

struct StepLog {
  std::string path;
  std::int64_t bytes = 0;
  std::string sha256;
  LogFormat format = LogFormat::kCsv;
  ColumnMap columns;
  std::vector<ImportedStep> steps;  ///< ascending; of a step that occurs twice the last
  std::vector<LogRestart> restarts;
  std::int64_t skipped = 0;  ///< rows without a loss, e.g. of evaluations
};

struct StepLogOptions {
  std::optional<LogFormat> format;              ///< absent: detected
  ColumnMap columns;                            ///< as for find_columns
  std::optional<std::int64_t> tokens_per_step;  ///< where the log tells no tokens
};

/// Throws Error(kInput) "FILE:LINE: …" for a row that cannot be understood, Error(kUsage) as
/// find_columns.
StepLog read_step_log(const std::filesystem::path& path, const StepLogOptions& options);

struct ImportedRun {
  std::string name;
  std::string config;  ///< JSON text
  std::uint64_t seed = 0;
  std::vector<std::string> tags;
  std::string command_line;
};

/// The run to which a log with this digest was imported before, if any.
std::optional<std::string> find_import(const RecordDatabase& records, const std::string& sha256);

/// Writes run, attempt, input, steps, events and tags in one transaction; returns the run id.
std::string write_step_log(RecordDatabase& records, const StepLog& log, const ImportedRun& run);

}  // namespace olmo::store
