// Another trainer's logs of losses as a run of ours (`olmo-harness runs import`).
#pragma once

#include <filesystem>
#include <optional>

#include "core/loss_mean.h"
#include "import/columns.h"
#include "import/log.h"
#include "import/wandb.h"
#include "store/runs/run_db.h"

namespace olmo::import {

/// A row of table metrics.
struct ImportedMetric {
  std::int64_t position = 0;
  std::size_t name = 0;  ///< index into StepLog::metric_names
  double value = 0;
};

/// Where a log goes back: what it had from there on is superseded, as by a run that resumes.
struct LogRestart {
  std::int64_t position = 0;  ///< at which it goes on
  std::string message;
  bool of_file = false;  ///< the next file, an attempt of its own, goes on there
};

/// One file.
struct StepLog {
  std::string path;
  std::int64_t bytes = 0;
  std::string sha256;
  LogFormat format = LogFormat::kCsv;
  ColumnMap columns;                           ///< target -> column of the log
  std::map<std::string, double> scales;        ///< target -> factor, where --map gives one
  std::map<std::string, std::int64_t> shifts;  ///< target -> what --map adds to step or tokens
  std::vector<std::string> ignored;            ///< columns that are neither
  bool steps_known = true;                     ///< false: the tokens are the axis
  std::vector<store::ImportedStepRecord>
      steps;  ///< ascending in position; of one that occurs twice the last
  std::vector<std::string> metric_names;
  std::vector<ImportedMetric> metrics;  ///< by position and name; finite ones
  std::vector<LogRestart> restarts;
  std::optional<double> begin_time;  ///< Unix seconds of the first row that tells them
  std::int64_t skipped = 0;          ///< rows without a loss, e.g. of evaluations
  std::int64_t unplaced = 0;         ///< of these, rows with metrics and without step or tokens
  std::int64_t repeated = 0;         ///< rows whose step comes again right after them
  std::int64_t headers = 0;          ///< header lines within the file
  std::int64_t rounded = 0;          ///< token counts that an event file cannot hold: left out
  bool reversed = false;             ///< the file had the last step first
  bool cut = false;                  ///< the file ends within a record, which is left out
  std::optional<WandbRun> run;       ///< what W&B's record tells of it

  /// "step 100" or "6400 tokens".
  [[nodiscard]] std::string place(std::int64_t position) const;
};

struct StepLogOptions {
  std::optional<LogFormat> format = {};  ///< absent: detected
  ColumnMap columns =
      {};  ///< as for find_columns; `COLUMN*FACTOR` converts units, `COLUMN+N` counts
  std::optional<std::int64_t> tokens_per_step = {};  ///< where the log tells steps or tokens only
  std::optional<std::int64_t> devices = {};          ///< makes the run's throughput of a device's
  std::vector<std::string> keep = {};  ///< patterns of further columns kept as metrics
};

/// Throws Error(kInput) "FILE:LINE: …" for a row that cannot be understood and as
/// refuse_foreign_log, Error(kUsage) as find_columns, and for a format that the file does not have.
StepLog read_step_log(const std::filesystem::path& path, const StepLogOptions& options);

/// How the files of one run follow each other.
enum class FileOrder { kTime, kSteps, kGiven };
std::string_view to_string(FileOrder order);  ///< for people

/// Puts the files of one run, a file for each of its jobs, in order: as given, or by the times of
/// their first rows, where all tell them, else by their first steps. Then each supersedes what
/// those before it have from its first step on, which becomes one of its restarts. Throws
/// Error(kUsage) if the steps do not tell which file was later, if the files have no axis or loss
/// in common, and for the same file twice.
FileOrder join_step_logs(std::vector<StepLog>& logs, bool as_given);

struct ImportedRun {
  std::string name;
  std::string config;  ///< JSON text
  std::uint64_t seed = 0;
  std::optional<std::int64_t> n_parameters = {}, max_steps = {};  ///< absent: not known
  std::vector<std::string> tags;
  std::string command_line;
  std::optional<std::int64_t> devices = {};
  std::string machine = "{}";  ///< JSON: host, os, gpu, … of where it ran, as far as known
  LossMeaning losses = {};
};

/// Writes run, an attempt and an input a file, steps, metrics, events and tags in one transaction;
/// returns the run id.
std::string write_step_logs(store::RecordDatabase& records, const std::vector<StepLog>& logs,
                            const ImportedRun& run);

}  // namespace olmo::import
