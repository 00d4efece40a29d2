#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/hash.h"
#include "models/model_files.h"
#include "store/checkpoint/checkpoint.h"

namespace olmo::models {

enum class ExportFormat { kHf, kOlmo };

struct ExportOptions {
  ExportFormat format = ExportFormat::kHf;
  bool bf16 = false;                          ///< round every tensor to bf16, else fp32
  std::uint64_t shard_bytes = 5'000'000'000;  ///< at most, of one file of format kHf
};

/// What was converted, and where it is now.
struct ConvertedModel {
  ModelFiles source;
  std::filesystem::path path;
  std::vector<std::string> files = {};  ///< below `path`, in the order of their names
  std::uint64_t bytes = 0;
  Digest weights_digest = {};  ///< of the source
};

/// Writes a model (any CHECKPOINT) as a folder that other software reads, whole or not at all:
///   - kHf: config.json and model.safetensors or its shards, for transformers' OlmoForCausalLM or
///     Olmo2ForCausalLM; tokenizer.json and tokenizer_config.json if the tokenizer is known;
///   - kOlmo: config.yaml (model and tokenizer) and model.pt, which all of OLMo's readers take
///     (OLMo.from_checkpoint no safetensors); and tokenizer.json if it is known.
/// Throws Error(kUsage) if `to` exists or the format cannot express the model, Error(kFailure) if
/// the disk refuses, else as load_model.
ConvertedModel export_model(const std::filesystem::path& checkpoint,
                            const std::filesystem::path& to, const ExportOptions& options);

/// Adds what else the source has to the contents of a checkpoint, which hold its weights.
using AddState = std::function<void(const ModelFiles& source, store::CheckpointContents&)>;

/// Writes a model of any format as a run directory of ours with one checkpoint, of kind weights,
/// `to`/step0, or with what `add_state` makes of it; and with tokenizer.json beside it if the model
/// comes with one; whole or not at all. Throws as export_model and `add_state`.
ConvertedModel import_model(const std::filesystem::path& from, const std::filesystem::path& to,
                            const AddState& add_state = {});

}  // namespace olmo::models
