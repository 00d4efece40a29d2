#pragma once

#include <cstdint>

#include "core/files/json.h"

namespace olmo::models {

/// What a config of another trainer's tells of a training in other words than OLMo's and with the
/// same meaning: the settings of AdamW as torch has it, the gradient's clipping, the instances of a
/// batch, and whether attention keeps to documents. They are taken out of `keys` and returned in
/// OLMo's keys. What such a trainer does otherwise (which parameters decay, the schedule) stays as
/// it is.
Json take_olmo_core_training(Json& keys, std::int64_t sequence_length);
/// The same of Hugging Face's TrainingArguments.
Json take_transformers_training(Json& keys);

}  // namespace olmo::models
