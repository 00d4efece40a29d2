#include "train/recorder.h"

#include "store/checkpoint/checkpoint_folder.h"
#include "store/runs/op_traces.h"
#include "store/runs/verify_record.h"

namespace olmo::train {

Recorder::Recorder(std::filesystem::path run_dir, const store::RunLock& lock, store::RunDb& db)
    : run_dir_(std::move(run_dir)),
      run_id_(db.run_id()),
      attempt_(db.attempt()),
      lock_(&lock),
      db_(&db) {}

Recorder::Recorder(std::filesystem::path run_dir, std::string run_id, std::int64_t attempt)
    : run_dir_(std::move(run_dir)), run_id_(std::move(run_id)), attempt_(attempt) {}

void Recorder::require_held() const {
  if (lock_ != nullptr) lock_->require_held();
}

void Recorder::record_step(const store::StepRecord& row) {
  if (db_ != nullptr) db_->record_step(row);
}

void Recorder::record_trace(std::int64_t step, const OpTrace& trace) {
  if (db_ == nullptr) return;
  store::record_trace(db_->records(), run_id_, {.attempt = attempt_, .audit = 0}, step,
                      trace.digests());
}

void Recorder::record_metric(std::int64_t step, const std::string& name, double value) {
  if (db_ != nullptr) db_->record_metric(step, name, value);
}

void Recorder::record_state_hashes(std::int64_t step, const std::vector<store::StateHash>& hashes,
                                   const Digest& chain) {
  if (db_ != nullptr) db_->record_state_hashes(step, hashes, store::seal_of(hashes, chain).hex());
}

void Recorder::record_checkpoint(const store::CheckpointRecord& row) {
  if (db_ != nullptr) db_->record_checkpoint(row);
}

void Recorder::record_checkpoint_deleted(const std::filesystem::path& path) {
  if (db_ != nullptr) db_->record_checkpoint_deleted(path.string());
}

void Recorder::record_peak(double flops, const std::string& source) {
  if (db_ != nullptr) db_->record_peak(flops, source);
}

void Recorder::record_energy(const std::vector<store::EnergyRecord>& energy,
                             const std::vector<store::PowerSample>& power) {
  if (db_ == nullptr) return;
  if (!power.empty()) db_->record_power(power);
  if (!energy.empty()) db_->record_energy(energy);
}

void Recorder::record_ranks(const std::vector<store::RankRecord>& rows) {
  if (db_ != nullptr) db_->record_ranks(rows);
}

void Recorder::record_phases(const std::vector<store::PhaseRecord>& rows) {
  if (db_ != nullptr) db_->record_phases(rows);
}

void Recorder::event(std::int64_t step, const std::string& kind, const std::string& message) {
  if (db_ != nullptr) db_->event(step, kind, message);
}

void Recorder::end_attempt(const std::string& outcome) {
  if (db_ != nullptr) db_->end_attempt(outcome);
}

void Recorder::flush() {
  if (db_ != nullptr) db_->flush();
}

void Recorder::show(const Progress& progress) {
  if (db_ == nullptr) return;
  if (!line_) line_.emplace();
  line_->show(progress);
}

void Recorder::end_line() {
  if (line_) line_->finish();
}

void Recorder::say(const std::string& text) {
  end_line();
  if (db_ != nullptr) log_line(text);
}

void Recorder::warn(std::int64_t step, const std::string& text) {
  end_line();
  if (db_ != nullptr) log_warning(text);
  event(step, "warning", text);
}

std::string Recorder::last_checkpoint() const {
  const auto there = store::list_checkpoints(run_dir_);
  return there.empty() ? "no checkpoint had been saved"
                       : "the last checkpoint is " + there.back().path.string();
}

}  // namespace olmo::train
