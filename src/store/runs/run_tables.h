// The tables of a run and the structs that their rows are: store/database/table.h, columns as in
// store/database/schema.cpp.
#pragma once

#include "store/database/table.h"
#include "store/runs/audit_records.h"
#include "store/runs/run_records.h"

namespace olmo::store {

inline constexpr Column<RunRecord> kRunColumns[] = {
    column<&RunRecord::run_id>("run_id"),
    column<&RunRecord::name>("name"),
    column<&RunRecord::created_utc>("created_utc"),
    column<&RunRecord::status>("status"),
    column<&RunRecord::config>("config"),
    column<&RunRecord::experiment_digest>("experiment_digest"),
    column<&RunRecord::seed>("seed"),
    column<&RunRecord::n_parameters>("n_parameters"),
    column<&RunRecord::max_steps>("max_steps"),
    column<&RunRecord::chain_format>("chain_format", 6, "1"),
};
inline constexpr Table<RunRecord> kRuns{"runs", "", kRunColumns};
/// The beginning of a condition for the rows of one run.
inline constexpr char kOfRun[] = "WHERE run_id = ? ";

inline constexpr Column<AttemptRecord> kAttemptColumns[] = {
    column<&AttemptRecord::attempt>("attempt"),
    column<&AttemptRecord::started_utc>("started_utc"),
    column_or_null<&AttemptRecord::ended_utc>("ended_utc"),
    column_or_null<&AttemptRecord::outcome>("outcome"),
    column<&AttemptRecord::start_step>("start_step"),
    column_or_null<&AttemptRecord::resumed_from>("resumed_from"),
    column<&AttemptRecord::command_line>("command_line"),
    column<&AttemptRecord::policy>("policy"),
    column<&AttemptRecord::build>("build"),
    column<&AttemptRecord::environment>("environment"),
    column<&AttemptRecord::world_size>("world_size", 8),
    column_or_null<&AttemptRecord::strategy>("strategy", 8),
    column_or_null<&AttemptRecord::launch>("launch", 8),
    column_or_null<&AttemptRecord::start_link>("start_link", 10),
    column<&AttemptRecord::start_epoch>("start_epoch", 11),
    column<&AttemptRecord::start_instance>("start_instance", 11),
};
inline constexpr Table<AttemptRecord> kAttempts{"attempts", "run_id", kAttemptColumns};

inline constexpr Column<RankRecord> kRankColumns[] = {
    column<&RankRecord::rank>("rank"),
    column<&RankRecord::host>("host"),
    column<&RankRecord::local_rank>("local_rank"),
    column<&RankRecord::pid>("pid"),
    column<&RankRecord::device>("device"),
    column<&RankRecord::processor>("processor"),
    column<&RankRecord::threads>("threads"),
    column<&RankRecord::steps>("steps"),
    column<&RankRecord::data_seconds>("data_seconds"),
    column<&RankRecord::compute_seconds>("compute_seconds"),
    column<&RankRecord::gather_seconds>("gather_seconds"),
    column<&RankRecord::exchange_seconds>("exchange_seconds"),
    column<&RankRecord::save_seconds>("save_seconds"),
    column<&RankRecord::wait_seconds>("wait_seconds"),
    column<&RankRecord::gathered_bytes>("gathered_bytes"),
    column<&RankRecord::exchanged_bytes>("exchanged_bytes"),
    column<&RankRecord::slowest_steps>("slowest_steps"),
    column<&RankRecord::attempt>("attempt"),
};
inline constexpr Table<RankRecord> kRanks{"ranks", "run_id", kRankColumns, 8};

inline constexpr Column<PhaseRecord> kPhaseColumns[] = {
    column<&PhaseRecord::first_step>("first_step"),
    column<&PhaseRecord::last_step>("last_step"),
    column<&PhaseRecord::phase>("phase"),
    column<&PhaseRecord::mean>("mean"),
    column<&PhaseRecord::least>("least"),
    column<&PhaseRecord::most>("most"),
    column<&PhaseRecord::rank>("rank"),
    column<&PhaseRecord::attempt>("attempt"),
};
inline constexpr Table<PhaseRecord> kPhases{"phases", "run_id", kPhaseColumns, 8};

inline constexpr Column<InputRecord> kInputColumns[] = {
    column<&InputRecord::kind>("kind"),
    column<&InputRecord::path>("path"),
    column<&InputRecord::bytes>("bytes"),
    column<&InputRecord::sha256>("sha256"),
};
inline constexpr Table<InputRecord> kInputs{"inputs", "run_id", kInputColumns};

inline constexpr Column<StepRecord> kStepColumns[] = {
    column<&StepRecord::attempt>("attempt"),
    column<&StepRecord::step>("step"),
    column<&StepRecord::epoch>("epoch"),
    column<&StepRecord::tokens>("tokens"),
    column<&StepRecord::lr>("lr"),
    column<&StepRecord::ce_loss>("ce_loss"),
    column<&StepRecord::ce_loss_per_label>("ce_loss_per_label"),
    column<&StepRecord::z_loss>("z_loss"),
    column<&StepRecord::loss>("loss"),
    column<&StepRecord::grad_norm>("grad_norm"),
    column<&StepRecord::max_grad_norm>("max_grad_norm"),
    column<&StepRecord::clipping_rate>("clipping_rate"),
    column<&StepRecord::param_norm>("param_norm"),
    column<&StepRecord::masked_instances>("masked_instances"),
    column<&StepRecord::seconds>("seconds"),
    column<&StepRecord::tokens_per_second>("tokens_per_second"),
    column<&StepRecord::mfu>("mfu"),
    column<&StepRecord::batch_hash>("batch_hash"),
    column_or_null<&StepRecord::loss_hash>("loss_hash", 6),
    column<&StepRecord::chain_hash>("chain_hash"),
};
inline constexpr Table<StepRecord> kSteps{"steps", "run_id", kStepColumns};

inline constexpr Column<ImportedStepRecord> kImportedStepColumns[] = {
    column<&ImportedStepRecord::position>("position", 5, "step"),
    column<&ImportedStepRecord::step>("step"),
    column<&ImportedStepRecord::tokens>("tokens"),
    column<&ImportedStepRecord::loss>("ce_loss"),
    column<&ImportedStepRecord::grad_norm>("grad_norm"),
    column<&ImportedStepRecord::lr>("lr"),
    column<&ImportedStepRecord::seconds>("seconds"),
    column<&ImportedStepRecord::tokens_per_second>("tokens_per_second"),
    column<&ImportedStepRecord::tokens_per_second_per_device>("tokens_per_second_per_device", 5),
};
inline constexpr Table<ImportedStepRecord> kImportedSteps{"imported_steps", "run_id",
                                                          kImportedStepColumns, 3};

inline constexpr Column<MetricRecord> kMetricColumns[] = {
    column<&MetricRecord::attempt>("attempt"),
    column<&MetricRecord::step>("step"),
    column<&MetricRecord::name>("name"),
    column<&MetricRecord::value>("value"),
};
inline constexpr Table<MetricRecord> kMetrics{"metrics", "run_id", kMetricColumns};

inline constexpr Column<StateHash> kStateHashColumns[] = {
    column<&StateHash::part>("part"),       column<&StateHash::name>("name"),
    column<&StateHash::sha256>("sha256"),   column<&StateHash::step>("step"),
    column<&StateHash::attempt>("attempt"),
};
inline constexpr Table<StateHash> kStateHashes{"state_hashes", "run_id", kStateHashColumns};

inline constexpr Column<StateSeal> kStateSealColumns[] = {
    column<&StateSeal::attempt>("attempt"),
    column<&StateSeal::step>("step"),
    column<&StateSeal::sha256>("sha256"),
};
inline constexpr Table<StateSeal> kStateSeals{"state_seals", "run_id", kStateSealColumns, 4};

inline constexpr Column<CheckpointRecord> kCheckpointColumns[] = {
    column<&CheckpointRecord::step>("step"),
    column<&CheckpointRecord::path>("path"),
    column<&CheckpointRecord::bytes>("bytes"),
    column<&CheckpointRecord::sha256>("sha256"),
    column<&CheckpointRecord::seconds>("seconds"),
    column<&CheckpointRecord::stall_seconds>("stall_seconds"),
    column<&CheckpointRecord::attempt>("attempt"),
    column<&CheckpointRecord::created_utc>("created_utc"),
    column_or_null<&CheckpointRecord::deleted_utc>("deleted_utc"),
};
inline constexpr Table<CheckpointRecord> kCheckpoints{"checkpoints", "run_id", kCheckpointColumns};

inline constexpr Column<EventRecord> kEventColumns[] = {
    column<&EventRecord::attempt>("attempt"), column<&EventRecord::step>("step"),
    column<&EventRecord::utc>("utc"),         column<&EventRecord::kind>("kind"),
    column<&EventRecord::message>("message"),
};
inline constexpr Table<EventRecord> kEvents{"events", "run_id", kEventColumns};

inline constexpr Column<TagRecord> kTagColumns[] = {
    column<&TagRecord::run_id>("run_id"),
    column<&TagRecord::tag>("tag"),
};
inline constexpr Table<TagRecord> kTags{"tags", "", kTagColumns};

inline constexpr Column<EnergyRecord> kEnergyColumns[] = {
    column<&EnergyRecord::source>("source"),      column<&EnergyRecord::device>("device"),
    column<&EnergyRecord::covers>("covers"),      column<&EnergyRecord::joules>("joules"),
    column<&EnergyRecord::seconds>("seconds"),    column<&EnergyRecord::samples>("samples"),
    column<&EnergyRecord::note>("note"),          column<&EnergyRecord::attempt>("attempt"),
    column<&EnergyRecord::host>("host", 8, "''"),
};
inline constexpr Table<EnergyRecord> kEnergy{"energy", "run_id", kEnergyColumns, 3};

inline constexpr Column<PowerSample> kPowerColumns[] = {
    column<&PowerSample::seconds>("seconds"), column<&PowerSample::source>("source"),
    column<&PowerSample::device>("device"),   column<&PowerSample::watts>("watts"),
    column<&PowerSample::attempt>("attempt"), column<&PowerSample::host>("host", 8, "''"),
};
inline constexpr Table<PowerSample> kPowerSamples{"power_samples", "run_id", kPowerColumns, 3};

inline constexpr Column<AuditRecord> kAuditColumns[] = {
    column<&AuditRecord::created_utc>("created_utc"),
    column<&AuditRecord::command_line>("command_line"),
    column<&AuditRecord::policy>("policy"),
    column<&AuditRecord::build>("build"),
    column<&AuditRecord::environment>("environment"),
    column<&AuditRecord::started_from>("started_from"),
    column<&AuditRecord::first_step>("first_step"),
    column<&AuditRecord::last_step>("last_step"),
    column<&AuditRecord::verdict>("verdict"),
    column<&AuditRecord::difference_step>("difference_step"),
    column<&AuditRecord::difference>("difference"),
    column<&AuditRecord::operation>("operation"),
    column<&AuditRecord::ce_loss_distance>("ce_loss_distance"),
    column<&AuditRecord::grad_norm_distance>("grad_norm_distance"),
    column<&AuditRecord::audit>("audit"),
};
inline constexpr Table<AuditRecord> kAudits{"audits", "run_id", kAuditColumns, 4};

}  // namespace olmo::store
