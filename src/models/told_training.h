#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/files/json.h"

namespace olmo::models {

/// What a config of another trainer's tells of a training in other words than OLMo's and with the
/// same meaning is taken out of `keys` and returned in OLMo's keys; the rest stays as it is.
///
/// Of OLMo-core's experiments: AdamW as torch has it with the parameters that decay, clipping, the
/// z-loss, schedules of OLMo's formulas, precision, length, the instances of a batch, and how
/// batches are made of token files. `model` is their TransformerConfig.
Json take_olmo_core_training(Json& keys, const Json& model, std::int64_t sequence_length);
/// The `optimizer` of such an experiment in OLMo's keys, be it AdamW, or SkipStepAdamW, which is
/// AdamW but for the steps that it leaves out; nothing: it is neither.
std::optional<Json> adamw_of_olmo_core(const Json& experiment);
/// Of Hugging Face's TrainingArguments, beside a model of that dtype (empty: it is not told): AdamW
/// and clipping, precision, length, and a constant learning rate.
Json take_transformers_training(Json& keys, const std::string& dtype);

}  // namespace olmo::models
