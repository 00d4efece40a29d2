#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/hash.h"
#include "store/run_db.h"
#include "store/run_records.h"

namespace olmo::store {

/// A checkpoint that the run says it saved.
struct RecordedCheckpoint {
  std::string path;             ///< where it was saved
  std::string manifest_sha256;  ///< of its manifest.json
};

/// What the record says that a training computed: what an audit compares with.
struct RecordedSteps {
  std::string run_id;
  std::string name;
  std::string config;  ///< JSON text
  std::string experiment_digest;
  std::int64_t chain_format = 1;             ///< core/hash_chain.h
  std::string policy;                        ///< JSON text, of the last attempt
  std::string environment;                   ///< JSON text, of the last attempt
  bool fast = false;                         ///< some attempt did not compute under `portable`
  double seconds = 0;                        ///< of all steps
  std::map<std::int64_t, StepRecord> steps;  ///< of the surviving line, by step
  std::map<std::int64_t, std::vector<StateHash>> state_hashes;
  std::map<std::int64_t, std::string> state_seals;  ///< none in older records
  std::map<std::int64_t, RecordedCheckpoint> checkpoints;
  std::vector<InputRecord> inputs;

  [[nodiscard]] std::int64_t last_step() const { return steps.empty() ? 0 : steps.rbegin()->first; }
};

/// Throws Error(kDamaged) for a database whose pages are not sound, Error(kUsage) for a run without
/// steps of ours.
RecordedSteps read_recorded_steps(const RunDb& db, const std::string& run_id);

/// Something that the record or a file of the run says, and that is not so.
struct Finding {
  std::int64_t step = 0;
  std::string quantity;  ///< a column of steps, PART/TENSOR of the state, or chain_hash
  std::string sentence;  ///< what was recorded, what was found
};

/// The link after the step of `row`, if its chain_hash is one and follows from `previous` (where
/// that is known) and from the row's own fields.
std::optional<Digest> next_link(const std::optional<Digest>& previous, const StepRecord& row,
                                std::int64_t chain_format);
/// The sentence about a row that has none.
std::string follows_not(const StepRecord& row);

/// Steps whose chain_hash does not follow from the one before and the step's own fields, and states
/// whose seal does not fit their hashes: rows that were altered. Needs no computation.
std::vector<Finding> broken_proofs(const RecordedSteps& recorded);

}  // namespace olmo::store
