// The runs of a database: written by trainings and imports, found and listed by the command line.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "store/database/record_database.h"
#include "store/runs/run_records.h"

namespace olmo::store {

/// The runs of a database (RecordDatabase says how and when rows become durable): one run and
/// attempt is written at a time. Everything but steps, metrics, energy and what ranks did is
/// committed at once. What a run holds is read by store/runs/recorded_run.h.
class RunDb {
 public:
  /// Throws as RecordDatabase.
  static RunDb open(const std::filesystem::path& path, OpenMode mode);

  // --- writing ---

  /// Makes the run and its first attempt durable and returns the new run id.
  std::string begin_run(RunRecord run, AttemptRecord attempt,
                        const std::vector<InputRecord>& inputs);
  /// Adds an attempt to an existing run, whose last step is now `max_steps`.
  void resume_run(const std::string& run_id, AttemptRecord attempt, std::int64_t max_steps);
  void record_step(StepRecord row);
  /// The attempt's peak (environment.peak_flops) is higher than it seemed: its steps' mfu follow.
  void record_peak(double flops, const std::string& source);
  void record_metric(std::int64_t step, const std::string& name, double value);
  /// `seal`: over the chain and the hashes.
  void record_state_hashes(std::int64_t step, std::vector<StateHash> hashes,
                           const std::string& seal);
  void record_checkpoint(CheckpointRecord row);
  void record_checkpoint_deleted(const std::string& path);
  /// Replaces what the attempt's same sources and devices had recorded.
  void record_energy(std::vector<EnergyRecord> rows);
  void record_power(std::vector<PowerSample> rows);
  /// Replaces what the attempt's ranks had recorded.
  void record_ranks(std::vector<RankRecord> rows);
  void record_phases(std::vector<PhaseRecord> rows);
  void event(std::int64_t step, const std::string& kind, const std::string& message);
  /// `outcome`: finished, stopped, diverged or failed. It becomes the run's status unless a later
  /// attempt has begun meanwhile: the run is that one's then.
  void end_attempt(const std::string& outcome);
  void flush() { records_->flush(); }
  void tag(const std::string& run_id, const std::string& tag, bool remove);

  // --- reading ---

  /// The run id that `prefix` names unambiguously; empty: the only or latest run. Throws
  /// Error(kUsage).
  [[nodiscard]] std::string find_run(const std::string& prefix) const;
  /// Whether some run's id begins with `prefix`.
  [[nodiscard]] bool has_run(const std::string& prefix) const;
  /// Throws Error(kUsage) if it is not there.
  [[nodiscard]] RunRecord run(const std::string& run_id) const;
  /// The latest run of an experiment; empty: none.
  [[nodiscard]] std::string latest_run_of(const std::string& experiment_digest) const;
  /// RecordDatabase::query, for tests.
  void query(const std::string& sql, const std::vector<SqlValue>& parameters,
             const RecordDatabase::OnRow& on_row) const {
    records_->query(sql, parameters, on_row);
  }

  /// The database, e.g. to write the evaluations of the run to it; lives as long as this object or
  /// what it was moved to.
  [[nodiscard]] RecordDatabase& records() { return *records_; }
  [[nodiscard]] const RecordDatabase& records() const { return *records_; }
  [[nodiscard]] const std::filesystem::path& path() const { return records_->path(); }
  [[nodiscard]] const std::string& run_id() const { return run_id_; }
  [[nodiscard]] std::int64_t attempt() const { return attempt_; }
  [[nodiscard]] const std::string& journal_mode() const { return records_->journal_mode(); }

 private:
  explicit RunDb(std::unique_ptr<RecordDatabase> records) : records_(std::move(records)) {}

  std::unique_ptr<RecordDatabase> records_;
  std::string run_id_;
  std::int64_t attempt_ = 0;
};

/// A RUN as the command line names it: `FILE.db`, `FILE.db:RUN_ID` (a prefix will do) or a run
/// directory.
struct RunName {
  std::filesystem::path database;
  std::string run;  ///< prefix, may be empty
};
RunName parse_run_name(const std::string& text);

// Runs of other trainers, written whole (import/steps.h reads their logs).

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

// The tables of a run as rows of named values: what `runs list`, `show` and `export` print.

/// The tables that hold rows of a run.
std::vector<std::string> tables_of_runs();

/// The run's rows of one of these tables, in a fixed order; `steps` are those that survive unless
/// `all_attempts`. A file of an older schema has no rows of a table that it lacks.
void for_each_row(const RunDb& db, const std::string& table, const std::string& run_id,
                  bool all_attempts, const RecordDatabase::OnRow& on_row);

/// Of each metric its name, the number of its points, the last point's step and value.
void for_each_metric(const RunDb& db, const std::string& run_id,
                     const RecordDatabase::OnRow& on_row);

}  // namespace olmo::store
