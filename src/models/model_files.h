#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "model/model_config.h"
#include "models/hf_config.h"
#include "models/read_weights.h"

namespace olmo::models {

/// Of Hugging Face's library `tokenizers`, beside a model.
inline constexpr char kTokenizerFile[] = "tokenizer.json";

/// How a checkpoint names its tokenizer.
struct TokenizerClue {
  std::optional<std::filesystem::path> file;  ///< a tokenizer.json that exists
  std::optional<std::string> identifier;      ///< as the config names it
  SpecialTokenIds ids;
};

enum class ModelFormat {
  kCheckpoint,  ///< ours
  kHf,          ///< OlmoForCausalLM
  kHf2,         ///< Olmo2ForCausalLM
  kHf3,         ///< Olmo3ForCausalLM
  kHfOlmo,      ///< OLMoForCausalLM of the package hf_olmo
  kOlmo,        ///< OLMo's own: config.yaml, and model.safetensors, model.pt or shards
  kOlmoCore,    ///< OLMo-core's, from version 2.0 on: config.json and model_and_optim/
};
/// olmo-harness, hf-olmo, hf-olmo2, hf-olmo3, hf_olmo, olmo, olmo-core.
std::string to_string(ModelFormat format);

/// The config of OLMo's own folder, and of any other.
inline constexpr const char *kOlmoConfig = "config.yaml", *kJsonConfig = "config.json";

/// A model on disk, recognised and described; its weights have not been read.
struct ModelFiles {
  std::filesystem::path path;  ///< the folder; of a run directory the checkpoint in it
  ModelFormat format = ModelFormat::kCheckpoint;
  model::ModelConfig config = {};
  TokenizerClue tokenizer = {};
  std::optional<std::string> run_id = {};  ///< of a checkpoint of ours
  std::optional<std::int64_t> step = {};   ///< of a checkpoint of ours
};

/// Finds out what `path` is, as load_model says, and throws as it does.
ModelFiles find_model(const std::filesystem::path& path);

/// Reads the weights: fp32, or with `keep_bf16` matrices stored in bf16 as they are. Throws as
/// load_model.
ModelWeights read_model_weights(const ModelFiles& files, bool keep_bf16);

}  // namespace olmo::models
