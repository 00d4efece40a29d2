// A run as a report needs it: read once, columns side by side.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/audit_records.h"

namespace olmo::report {

/// The surviving steps in ascending order; all columns have the same length. What was not recorded
/// is NaN (or an empty column).
struct StepColumns {
  std::vector<std::int64_t> step;    ///< the tokens where an import has no steps
  std::vector<std::int64_t> tokens;  ///< seen so far; the step where an import has no tokens
  std::vector<double> loss;          ///< ce_loss, nats
  std::vector<double> grad_norm;     ///< before clipping
  std::vector<double> lr;
  std::vector<double> tokens_per_second;
  std::vector<double> tokens_per_second_per_device;  ///< empty: not recorded as such
  std::vector<double> seconds;
  std::vector<std::uint64_t> batch;  ///< first 64 bits of the batch hash; empty: imported
  std::vector<std::uint64_t> chain;  ///< first 64 bits of the hash chain; empty: imported

  bool steps_known = true;

  [[nodiscard]] std::size_t size() const { return step.size(); }
};

struct StateHashRow {
  std::int64_t step = 0;
  std::string part, name, sha256;
};

/// A number that was recorded now and then under a name of its own (table metrics).
struct RecordedMetric {
  std::string name;
  std::int64_t points = 0;
  std::int64_t last_step = 0;  ///< of the last point; tokens where an import has no steps
  double last = 0;
};

struct RecordedInput {
  std::string kind, path, sha256;
  std::int64_t bytes = 0;
};

struct RecordedEvent {
  std::int64_t attempt = 0, step = 0;
  std::string utc, kind, message;
};

/// One attempt; texts are JSON.
struct RecordedAttempt {
  std::int64_t attempt = 0, start_step = 0;
  std::string started_utc, ended_utc, outcome, resumed_from, command_line;
  std::string policy, build, environment;
};

/// Energy of one source over one attempt (table energy).
struct RecordedEnergy {
  std::int64_t attempt = 0;
  std::string source;             ///< nvml, rocm_smi, rapl, pm_counters, slurm
  std::string device;             ///< e.g. gpu0, package-0, node
  std::string covers;             ///< device, package, node, job
  std::optional<double> joules;   ///< absent: not measured, `note` says why
  std::optional<double> seconds;  ///< that the measurement spans
  std::int64_t samples = 0;
  std::string note;
};

struct RecordedRun {
  std::string label;  ///< as the command line named it, without folders
  std::string run_id, name, created_utc, status;
  std::string config;  ///< JSON; "{}" for an import without one
  std::string experiment_digest;
  std::int64_t chain_format = 1;  ///< core/hash_chain.h
  std::vector<std::string> tags;
  std::int64_t n_parameters = 0;
  std::int64_t max_steps = 0;
  bool imported = false;
  bool tokens_known = true;
  StepColumns steps;
  std::string last_chain;  ///< hash chain after the last step, hex; empty: imported
  std::vector<RecordedAttempt> attempts;
  std::vector<RecordedInput> inputs;
  std::vector<RecordedEvent> events;
  std::vector<RecordedMetric> metrics;  ///< by name
  std::vector<StateHashRow> state_hashes;
  std::vector<RecordedEnergy> energy;
  std::vector<store::AuditRecord> audits;  ///< oldest first
  /// What makes the record unfit: a broken hash chain, steps that are missing or twice, values that
  /// are not finite. One sentence each.
  std::vector<std::string> damage;
};

/// Reads the run with this id. The hash chain is computed again from the rows, so that an altered
/// value shows. Throws Error(kDamaged) for a database that cannot be read.
RecordedRun read_run(const store::RecordDatabase& records, const std::string& run_id);

}  // namespace olmo::report
