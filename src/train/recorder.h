// What a training leaves beside its checkpoints: the rows of its database, and what a person reads
// meanwhile.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/process/terminal.h"
#include "core/trace/op_trace.h"
#include "store/runs/run_db.h"
#include "store/runs/run_folder.h"

namespace olmo::train {

/// The record of a running attempt. Of several ranks one writes; on the others the recorder is
/// empty: it knows the run and does nothing, so that the training loop is the same on all.
class Recorder {
 public:
  /// Writes to `db`, in which the attempt was begun, while `lock`, of `run_dir`, is held.
  Recorder(std::filesystem::path run_dir, const store::RunLock& lock, store::RunDb& db);
  /// An empty one, of an attempt that another rank records.
  Recorder(std::filesystem::path run_dir, std::string run_id, std::int64_t attempt);

  [[nodiscard]] const std::filesystem::path& run_dir() const { return run_dir_; }
  [[nodiscard]] const std::string& run_id() const { return run_id_; }
  [[nodiscard]] std::int64_t attempt() const { return attempt_; }
  /// The run's database; null where the recorder is empty.
  [[nodiscard]] store::RunDb* db() const { return db_; }
  /// Throws Error(kFailure) if the right to write to the run folder was taken away.
  void require_held() const;

  void record_step(const store::StepRecord& row);
  void record_trace(std::int64_t step, const OpTrace& trace);
  void record_metric(std::int64_t step, const std::string& name, double value);
  /// With the seal over them and the chain.
  void record_state_hashes(std::int64_t step, const std::vector<store::StateHash>& hashes,
                           const Digest& chain);
  void record_checkpoint(const store::CheckpointRecord& row);
  void record_checkpoint_deleted(const std::filesystem::path& path);
  void record_peak(double flops, const std::string& source);
  void record_energy(const std::vector<store::EnergyRecord>& energy,
                     const std::vector<store::PowerSample>& power);
  void record_ranks(const std::vector<store::RankRecord>& rows);
  void record_phases(const std::vector<store::PhaseRecord>& rows);
  void event(std::int64_t step, const std::string& kind, const std::string& message);
  void end_attempt(const std::string& outcome);
  /// A resume goes on from a checkpoint only if the record holds all steps up to it.
  void flush();

  /// Shows how far the training is, in one line.
  void show(const Progress& progress);
  /// The line of progress is done with: other lines follow.
  void end_line();
  /// A line of the log.
  void say(const std::string& text);
  /// A line of the log, and an event.
  void warn(std::int64_t step, const std::string& text);

  /// Names the newest whole checkpoint of the run folder, or says that there is none.
  [[nodiscard]] std::string last_checkpoint() const;

 private:
  std::filesystem::path run_dir_;
  std::string run_id_;
  std::int64_t attempt_;
  const store::RunLock* lock_ = nullptr;
  store::RunDb* db_ = nullptr;
  std::optional<ProgressLine> line_;
};

}  // namespace olmo::train
