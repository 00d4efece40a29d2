// What the record vouches for, held against what a resume would go on with.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/compute/policy.h"
#include "core/files/json.h"
#include "data/batch.h"
#include "store/runs/run_db.h"
#include "train/train_state.h"

namespace olmo::train {

/// The end of a sentence that refuses a resume: how to go on nevertheless, on the record.
std::string way_on(const std::optional<std::filesystem::path>& checkpoint);

/// The record must hold every step up to the checkpoint's, each following from the one before, and
/// end in the checkpoint's own link. Throws Error(kDamaged) with what is missing or was altered.
void require_vouched_for(const store::RunDb& db, const std::string& run_id, const Start& start);

/// This process, as it would go on with a run.
struct Successor {
  const config::TrainConfig& config;
  const Policy& policy;
  const std::vector<store::InputRecord>& inputs;
  const std::optional<Start>& start;
};

/// Token files, label masks, tokenizer (and weights, if they are read again) must have the recorded
/// content in the recorded order, the batch of the checkpoint's step its recorded hash, and the
/// policy the recorded numerics; under `fast` also what a user can set of that which decides its
/// bits: device, isa, threads. Throws Error(kInput) and Error(kUsage). Returns a sentence for each
/// change that cannot alter what the run computes, or that only the machine decides: the record
/// must name it.
std::vector<std::string> check_successor(const store::RunDb& db, const std::string& run_id,
                                         const Successor& now, data::BatchSource& batches);

/// The config that the record has of a run. Throws Error(kDamaged) if it is none.
Json recorded_config(const store::RunDb& db, const std::string& run_id);

/// A config that an older version may have recorded, with the keys that have come since, each at
/// the value that changes nothing. One that this version cannot read stays as it is.
Json with_new_keys(const Json& recorded);

/// A config's JSON without what says where something lies or what computes.
Json without_placement(const Json& config, const std::string& group = "");

/// One sentence for each leaf in which two configs differ: "`optimizer.learning_rate` was 0.001, is
/// 0.002".
std::vector<std::string> differences(const Json& before, const Json& now);

}  // namespace olmo::train
