#pragma once

#include <string>

#include "core/files/json.h"
#include "models/hf_config.h"

namespace olmo::models {

/// Whether a config.json is that of an experiment of OLMo-core, from version 2.0 on: its `model` is
/// a TransformerConfig (olmo_core/nn/transformer/config.py).
bool is_olmo_core_config(const Json& json);

/// The model of such a config, of the file `where`: OLMo 2 or 3, with the tokens of
/// `dataset.tokenizer`, and sequences as long as the experiment trained on. Throws Error(kInput)
/// naming each key that asks for what we do not have (another order of norms, experts, another
/// pattern of windows, …), or that is not known.
HfConfig parse_olmo_core_config(const Json& json, const std::string& where);

/// Whether that model computes the angles of its rotations in fp32, whatever the precision.
bool rotates_in_full_precision(const Json& json);

}  // namespace olmo::models
