#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "store/run_records.h"
#include "store/sqlite.h"

namespace olmo::store {

/// The run database of store/schema.h.
///
/// Durability: rows are collected for at most half a second and then committed with a sync to disk,
/// so that a crash at any moment loses less than the last second; everything but steps and metrics
/// is committed at once. WAL journal where the file system has shared memory, rollback journal
/// otherwise (Lustre, NFS and other network file systems). Several processes may write different
/// runs of one database: a write waits up to 30 s for another's.
class RunDb {
 public:
  /// kCreate makes the file and its tables if there is none. Throws Error(kDamaged) for a foreign
  /// or damaged file and for one of a newer schema, Error(kUsage) for a path that cannot be opened.
  static RunDb open(const std::filesystem::path& path, OpenMode mode);
  ~RunDb();
  RunDb(RunDb&&) = default;
  RunDb& operator=(RunDb&&) = delete;

  // --- writing: one run and attempt at a time ---

  /// Makes the run and its first attempt durable and returns the new run id.
  std::string begin_run(const RunRecord& run, const AttemptRecord& attempt,
                        const std::vector<InputRecord>& inputs);
  /// Adds an attempt to an existing run.
  void resume_run(const std::string& run_id, const AttemptRecord& attempt);
  void record_step(const StepRecord& row);
  void record_metric(std::int64_t step, const std::string& name, double value);
  void record_state_hashes(std::int64_t step, const std::vector<StateHash>& hashes);
  void record_checkpoint(const CheckpointRecord& row);
  void record_checkpoint_deleted(const std::string& path);
  void event(std::int64_t step, const std::string& kind, const std::string& message);
  /// `outcome`: finished, stopped, diverged or failed.
  void end_attempt(const std::string& outcome);
  void flush();

  // --- reading ---

  /// The run id that `prefix` names unambiguously; empty: the only or latest run. Throws
  /// Error(kUsage).
  [[nodiscard]] std::string find_run(const std::string& prefix) const;
  [[nodiscard]] bool has_run(const std::string& run_id) const;
  [[nodiscard]] std::string run_config(const std::string& run_id) const;
  /// Rows of `sql` with its column names; `on_row` gets (names, values).
  using OnRow = std::function<void(const std::vector<std::string>&, const std::vector<SqlValue>&)>;
  void query(const std::string& sql, const std::vector<SqlValue>& parameters,
             const OnRow& on_row) const;
  void tag(const std::string& run_id, const std::string& tag, bool remove);

  [[nodiscard]] const std::filesystem::path& path() const { return db_.path(); }
  [[nodiscard]] const std::string& run_id() const { return run_id_; }
  [[nodiscard]] const std::string& journal_mode() const { return journal_mode_; }

 private:
  struct PendingRow {
    const char* sql;
    std::vector<SqlValue> values;
  };

  RunDb(Database db, OpenMode mode);
  void check_identity();
  void migrate();
  void choose_journal();
  void insert_attempt(const AttemptRecord& attempt);
  void add(const char* sql, std::vector<SqlValue> values, bool now);

  Database db_;
  std::string run_id_;
  std::int64_t attempt_ = 0;
  std::string journal_mode_;
  std::vector<PendingRow> pending_;
  std::chrono::steady_clock::time_point last_flush_ = std::chrono::steady_clock::now();
};

/// A RUN as the command line names it: `FILE.db`, `FILE.db:RUN_ID` (a prefix will do) or a run
/// directory.
struct RunName {
  std::filesystem::path database;
  std::string run;  ///< prefix, may be empty
};
RunName parse_run_name(const std::string& text);

/// Now, as `2026-01-31T23:59:59.123Z`.
std::string utc_now();

}  // namespace olmo::store
