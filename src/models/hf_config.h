#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/files/json.h"
#include "model/model_config.h"

namespace olmo::models {

/// Ids that a checkpoint gives to the tokens with a meaning of their own.
struct SpecialTokenIds {
  std::optional<std::int64_t> eos, bos, pad;
};

/// `bos_token_id`, `eos_token_id` and `pad_token_id` of an object in the file `where`. None:
/// absent, null, or without one of the embedding's `rows`. Throws Error(kInput) naming a key of
/// another type.
SpecialTokenIds read_special_token_ids(const Json& json, const std::string& where,
                                       std::int64_t rows);
/// The way back: all three keys, null where there is none.
Json to_json(const SpecialTokenIds& ids);

/// A `config.json` of Hugging Face's OlmoConfig, Olmo2Config or Olmo3Config.
struct HfConfig {
  model::ModelConfig model;
  SpecialTokenIds ids;
};

/// Reads `json`, of the file `where`, with the defaults of Hugging Face's classes. Throws
/// Error(kInput) for another model_type, and naming each key that asks for what we do not have
/// (attention_bias, rotations other than YaRN of OLMo 3, another activation, quantization, …). Keys
/// that those classes do not look at are not looked at here.
HfConfig parse_hf_config(const Json& json, const std::string& where);

/// The way back: what OlmoForCausalLM needs, with norm_after Olmo2ForCausalLM, and with a sliding
/// window or a scaling of rotations Olmo3ForCausalLM; `dtype` is
/// float32 or bfloat16. Throws Error(kUsage) for a config that none of these classes can express.
Json to_hf_config(const model::ModelConfig& config, const SpecialTokenIds& ids,
                  const std::string& dtype);

}  // namespace olmo::models
