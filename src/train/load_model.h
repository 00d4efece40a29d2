#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/hash.h"
#include "core/policy.h"
#include "model/olmo.h"

namespace olmo::train {

/// What a checkpoint says of its tokenizer.
struct TokenizerClue {
  std::optional<std::filesystem::path> file;  ///< a tokenizer.json that exists
  std::optional<std::string> identifier;      ///< as the config names it
  std::optional<std::int64_t> eos_token_id;
  std::optional<std::int64_t> bos_token_id;
  std::optional<std::int64_t> pad_token_id;
};

/// A model, ready to run, and where it came from.
struct LoadedModel {
  model::Olmo model;           ///< model.config() has the hyperparameters
  std::filesystem::path path;  ///< what was read: of a run directory the checkpoint in it
  std::string format;          ///< olmo-harness, hf-olmo, hf-olmo2, hf_olmo, olmo
  std::string description;     ///< one line for people: format, parameters, step
  /// SHA-256 over the parameters sorted by name: of each its name, a zero byte, its shape in
  /// decimal digits joined by `,`, a zero byte, and the 32 bytes of the SHA-256 of its values as
  /// little-endian fp32. The same for every container of equal values.
  Digest weights_digest;
  std::optional<std::string> run_id;  ///< of a checkpoint of ours
  std::optional<std::int64_t> step;   ///< of a checkpoint of ours
  TokenizerClue tokenizer;
};

/// Loads a model for inference from any CHECKPOINT:
///   - a checkpoint directory of ours, or a run directory (its latest);
///   - a Hugging Face folder of OlmoForCausalLM or Olmo2ForCausalLM (`config.json` and
///     `model.safetensors` or its shards), or of the older hf_olmo package (OLMoForCausalLM);
///   - OLMo's own layout: `config.yaml` with `model:`, and `model.safetensors`.
/// Safetensors are read through memory maps, so that no more memory is needed than the weights take
/// in the end: bf16 stays bf16, all else becomes fp32.
///
/// Throws Error(kInput) for what is not there, not supported (by the name of the key that asks for
/// it) or does not fit the config, and for Python pickles with the way to convert them;
/// Error(kDamaged) for files that are cut short or altered.
LoadedModel load_model(const std::filesystem::path& path, const Policy& policy);

/// What does not fit between a checkpoint and the tokenizer that is to be used with it. Throws
/// Error(kInput) if the tokenizer has ids beyond the embedding, or if its `<|endoftext|>` is not
/// the checkpoint's end-of-text id; the latter is only a note (returned) for the ids 0 and 50279,
/// which OLMo's own configs and tokenizer files mix up.
std::optional<std::string> check_tokenizer_fits(const LoadedModel& loaded,
                                                const std::filesystem::path& tokenizer_file);

}  // namespace olmo::train
