#pragma once

#include <optional>
#include <string>

#include "models/model_files.h"
#include "store/checkpoint/checkpoint.h"
#include "train/train_state.h"

namespace olmo::train {

/// What a training takes over of OLMo's checkpoint beside its tensors.
struct OlmoState : SavedState {
  std::string counters;  ///< the file of OLMo's trainer that counted; empty: reckoned
};

/// The state of a checkpoint, if there is one that a training can go on from.
struct TakenState {
  std::optional<OlmoState> state;
  std::string left_out;  ///< why OLMo-core's was not taken: one sentence without its full stop
};

/// Makes the contents of a checkpoint, which hold the weights of OLMo's own one at `source`, those
/// of a whole one: with the optimizer's state beside them (models/olmo_optimizer.h), and the
/// trainer's counters: of train.pt, or of the file of rank 0 where OLMo wrote shards. Where none
/// is, they follow from the number of updates and from the config.yaml there, as if every batch had
/// had the size that it says. Of OLMo-core's they are those of train/rank0.pt, and the config is
/// what its config.json tells in OLMo's keys. The chain of a run that goes on from it begins with a
/// digest of all its tensors.
///
/// Returns the state; nothing, and leaves the contents as they are, where no optimizer's state is,
/// and where OLMo-core's is none that AdamW goes on from: then the weights are taken alone. Throws
/// Error(kInput) for a config that the trainer could not have had, or that names another
/// optimizer than the state is of, for a file without its counters, and as read_olmo_optimizer.
TakenState add_olmo_state(const models::ModelFiles& source, store::CheckpointContents& contents);

}  // namespace olmo::train
