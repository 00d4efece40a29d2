#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/compute/policy.h"
#include "core/hash.h"
#include "data/tokenizer/tokenizer.h"
#include "model/olmo.h"
#include "models/model_files.h"

namespace olmo::models {

/// A model, ready to run, and where it came from.
struct LoadedModel {
  model::Olmo model;  ///< model.config() has the hyperparameters
  ModelFiles files;   ///< what was read; the tokenizer that goes with it, if it is known
  Digest weights_digest;
  std::string description;  ///< one line for people
};

/// Loads a model for inference from any CHECKPOINT:
///   - a checkpoint directory of ours, or a run directory (its latest);
///   - a Hugging Face folder of OlmoForCausalLM or Olmo2ForCausalLM (`config.json`, and
///     `model.safetensors` or `pytorch_model.bin`, or its shards), or of the older hf_olmo package
///     (OLMoForCausalLM);
///   - OLMo's own layout: `config.yaml` with `model:`, and `model.safetensors` or `model.pt`.
/// Weights are read through memory maps, so that no more memory is needed than the weights take
/// in the end: bf16 stays bf16, all else becomes fp32.
///
/// Throws Error(kInput) for what is not there, not supported (by the name of the key that asks for
/// it) or does not fit the config; Error(kDamaged) for files that are cut short or altered.
LoadedModel load_model(const std::filesystem::path& path, const Policy& policy);
/// The same of what find_model() has found.
LoadedModel load_model(ModelFiles files, const Policy& policy);

/// Whether a tokenizer (`name` is for messages) can be used with a model. Throws Error(kInput) if
/// it has ids beyond the embedding, or if its `<|endoftext|>` is not the model's end-of-text id.
/// The ids 0 and 50279, which OLMo's own configs and tokenizer files mix up, are told apart by
/// nothing that we have: there the disagreement is returned, to be noted with the result.
std::optional<std::string> check_tokenizer_fits(const ModelFiles& files,
                                                const data::Tokenizer& tokenizer,
                                                const std::string& name);

/// The token that ends texts: the model's, else the tokenizer's `<|endoftext|>`. Throws
/// Error(kInput) if neither has one. Without a tokenizer, nobody asks for it: the config's.
std::int64_t end_of_text(const ModelFiles& files, const data::Tokenizer* tokenizer);

}  // namespace olmo::models
