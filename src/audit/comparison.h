// The record of a run, held against what was computed here.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "store/runs/recorded_run.h"
#include "store/runs/run_records.h"

namespace olmo::audit {

/// What the record says that a training computed: what an audit compares with.
struct AuditedRun : store::RecordedRun {
  std::map<std::int64_t, store::StepRecord> rows;  ///< of the surviving line, by step
  bool fast = false;                               ///< some attempt was not `portable`
  double seconds = 0;                              ///< of all steps

  [[nodiscard]] std::int64_t first_step() const { return rows.empty() ? 0 : rows.begin()->first; }
  [[nodiscard]] std::int64_t last_step() const { return rows.empty() ? 0 : rows.rbegin()->first; }
};

/// Throws Error(kDamaged) for a database whose pages are not sound and for a run that has lost all
/// of its steps, Error(kUsage) for one without steps of ours.
AuditedRun read_audited_run(const store::RecordDatabase& records, const std::string& run_id);

/// The columns in which a recorded row and a computed one differ in any bit, in the order in which
/// a step computes them; times are not compared.
std::vector<store::Finding> compare_rows(const store::StepRecord& recorded,
                                         const store::StepRecord& computed,
                                         std::int64_t chain_format);

/// Of the state after `step`: tensors whose hash differs, or that one side lacks, in the order of
/// `computed`. Only hashes of parts that both have are compared.
std::vector<store::Finding> compare_states(std::int64_t step, const std::string& source,
                                           const std::vector<store::StateHash>& recorded,
                                           const std::vector<store::StateHash>& computed);

/// How far the record is from the portable reference over a stretch.
struct Distances {
  double ce_loss = 0;    ///< largest absolute difference, nats
  double grad_norm = 0;  ///< largest difference relative to the reference

  void add(const store::StepRecord& recorded, const store::StepRecord& reference);
};

/// How a record under `fast` compares with two computations on this machine.
struct EnvelopeResult {
  bool identical = true;                ///< the record has the bits of `fast` on this machine
  std::int64_t steps = 0;               ///< compared
  Distances distances;                  ///< of the record from the portable reference
  std::vector<store::Finding> outside;  ///< what lies further from it than the envelope
};

/// At each step the envelope of a quantity is four times the largest distance up to there between
/// `here` (fast) and `reference` (portable), and at least 1e-6 of the value: differences of
/// rounding grow with the steps, and those of one machine are only a sample of what rounding can
/// do. What does not depend on rounding (batch, tokens, learning rate) must be equal. Both lists
/// start at one step.
EnvelopeResult compare_with_envelope(const AuditedRun& recorded,
                                     const std::vector<store::StepRecord>& reference,
                                     const std::vector<store::StepRecord>& here);

}  // namespace olmo::audit
