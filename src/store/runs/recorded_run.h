// A recorded run: everything that the database holds of it but evaluations and traces, read once
// and verified on the way.
#pragma once

#include <map>

#include <nlohmann/json_fwd.hpp>

#include "core/data_position.h"
#include "store/runs/audit_records.h"
#include "store/runs/run_db.h"
#include "store/runs/run_line.h"
#include "store/runs/verify_record.h"

namespace olmo::store {

/// The surviving steps in ascending order, columns side by side: a million of them take about 130
/// MB. All columns have the same length; what was not recorded is NaN (or an empty column).
struct StepColumns {
  std::vector<std::int64_t> step;      ///< the tokens where an import has no steps
  std::vector<std::int64_t> tokens;    ///< seen so far; the step where an import has no tokens
  std::vector<double> loss;            ///< ce_loss, nats
  std::vector<double> loss_per_label;  ///< ce_loss_per_label, nats; empty: imported
  /// What `loss` and `grad_norm` were multiplied by, so that they compare with another run's.
  double loss_factor = 1;
  std::vector<double> written_loss;            ///< `loss` as recorded; empty: it still is
  std::vector<std::int64_t> masked_instances;  ///< empty: imported
  std::vector<std::int64_t> epoch;             ///< from 0; empty: imported
  std::vector<double> grad_norm;               ///< before clipping
  std::vector<double> lr;
  std::vector<double> max_grad_norm;  ///< NaN: no limit; empty: imported
  std::vector<double> clipping_rate;  ///< empty: imported
  std::vector<double> tokens_per_second;
  std::vector<double> tokens_per_second_per_device;  ///< empty: not recorded as such
  std::vector<double> seconds;
  std::vector<double> mfu;           ///< NaN: the peak was not known; empty: imported
  std::vector<std::uint64_t> batch;  ///< first 64 bits of the batch hash; empty: imported
  std::vector<std::uint64_t> chain;  ///< first 64 bits of the hash chain; empty: imported
  std::vector<std::uint64_t>
      values;  ///< digest_of_values (store/runs/verify_record.h); empty: imported

  bool steps_known = true;

  [[nodiscard]] std::size_t size() const { return step.size(); }
};

/// A number that was recorded now and then under a name of its own (table metrics, which no seal is
/// over).
struct RecordedMetric {
  std::string name;
  std::int64_t points = 0;
  std::int64_t last_step = 0;  ///< of the last point; tokens where an import has no steps
  double last = 0;
};

struct RecordedRun : RunRecord {
  std::string label;  ///< what a report calls it
  std::vector<std::string> tags;
  bool imported = false;
  bool tokens_known = true;
  StepColumns steps;
  /// Of all steps of an attempt, with those that a later one replaced; empty: imported.
  std::map<std::int64_t, double> step_seconds;
  std::string last_chain;  ///< hash chain after the last step, hex; empty: imported
  std::vector<AttemptRecord> attempts;
  std::vector<InputRecord> inputs;  ///< in the order in which the training reads them
  std::vector<EventRecord> events;
  std::vector<RecordedMetric> metrics;  ///< by name
  // Of the line of steps that led to the present weights, as the steps.
  std::map<std::int64_t, std::vector<StateHash>> state_hashes;  ///< by step; part and name
  std::map<std::int64_t, std::string> state_seals;              ///< none in older records
  std::map<std::int64_t, CheckpointRecord> checkpoints;         ///< by step; without those deleted
  std::vector<EnergyRecord> energy;
  std::vector<RankRecord> ranks;    ///< by attempt; none in older records
  std::vector<PhaseRecord> phases;  ///< by attempt and step; none in older records
  std::vector<AuditRecord> audits;  ///< oldest first
  /// What makes the record unfit (store/runs/verify_record.h), as found; of many only the first.
  std::vector<Finding> damage;
};

/// Reads the run with this id. Throws Error(kDamaged) for a database that cannot be read and
/// Error(kUsage) if it does not hold the run.
RecordedRun read_run(const RecordDatabase& records, const std::string& run_id);

/// What the last attempt recorded of its surroundings, or an import states of its log; empty: none.
nlohmann::json environment_of(const RecordedRun& run);

/// Whether a run goes on from a checkpoint of another: it shares the steps before with others.
bool is_branch(const RecordedRun& run);

/// The step after which a run with these attempts began: 0, or that of a checkpoint, if it took
/// over another run's.
std::int64_t start_of(const std::vector<AttemptRecord>& attempts);

/// Where in the data it began. Nothing: an older version recorded it, whose runs all began with the
/// first instance of their epoch, as their configs tell it.
std::optional<DataPosition> data_begin_of(const std::vector<AttemptRecord>& attempts);

/// Devices of an attempt with these ranks: GPUs, one a rank; where processors compute, machines.
std::int64_t devices_of(const std::vector<RankRecord>& ranks);

/// Of every run, the oldest first.
std::vector<std::string> run_ids(const RecordDatabase& records);
/// Throws Error(kUsage) if the database does not hold it.
RunRecord read_run_record(const RecordDatabase& records, const std::string& run_id);
/// In their order.
std::vector<AttemptRecord> read_attempts(const RecordDatabase& records, const std::string& run_id);
/// In the order in which the training reads them.
std::vector<InputRecord> read_inputs(const RecordDatabase& records, const std::string& run_id);
/// The ids of the runs whose first attempt goes on from a checkpoint.
std::vector<std::string> runs_from_checkpoints(const RecordDatabase& records);
/// The tags of all runs.
std::vector<TagRecord> read_tags(const RecordDatabase& records);

/// The steps first..last, by step, of the line that led to the present weights: a later attempt
/// that started before a step has replaced it. (As the view surviving_steps, which takes long for
/// many steps.)
std::map<std::int64_t, StepRecord> read_steps(const RecordDatabase& records,
                                              const std::string& run_id, std::int64_t first,
                                              std::int64_t last);

/// The metrics of that line at the steps first..last, by step and name; of an import at these
/// positions, those of any file.
std::vector<MetricRecord> read_metrics(const RecordDatabase& records, const RunLine& line,
                                       std::int64_t first, std::int64_t last);

/// The steps of an import at the positions first..last.
std::vector<ImportedStepRecord> read_imported_steps(const RecordDatabase& records,
                                                    const std::string& run_id, std::int64_t first,
                                                    std::int64_t last);
/// The one at the last position.
std::optional<ImportedStepRecord> last_imported(const RecordDatabase& records,
                                                const std::string& run_id);

/// What sensors measured, by attempt.
std::vector<EnergyRecord> read_energy(const RecordDatabase& records, const std::string& run_id);

/// The last step of that line, or of an imported run; nothing: it has none, or none is known.
std::optional<std::int64_t> last_step(const RecordDatabase& records, const std::string& run_id);

/// The steps of a run up to `last`, as far as they follow from each other without a gap.
struct SoundSteps {
  std::int64_t first = 0;          ///< the step before the first
  std::int64_t last = 0;           ///< that is sound
  std::optional<Digest> link;      ///< the chain after it, where it is known
  std::optional<Finding> altered;  ///< why they end there; nothing: steps are missing, or none is
};
SoundSteps sound_steps(const RecordDatabase& records, const std::string& run_id, std::int64_t last);

/// The steps that a checkpoint of the run stands on were left: a later attempt began before it.
bool was_left(const RecordDatabase& records, const std::string& run_id, std::int64_t step,
              const std::string& chain_hash);

}  // namespace olmo::store
