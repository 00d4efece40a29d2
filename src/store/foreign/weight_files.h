#pragma once

#include <filesystem>

#include "store/foreign/stored_tensors.h"

namespace olmo::store {

/// The tensors of a file; or of a folder: of its `model.safetensors`, else the shards that its
/// `model.safetensors.index.json` names, in the order of their names, else the same of `model.pt`
/// (OLMo's) and `pytorch_model.bin` (Hugging Face's), else what open_model_shards reads. Throws as
/// SafetensorsFile, TorchFile and open_model_shards; Error(kDamaged) also if an index and its
/// shards disagree.
StoredTensors open_weights(const std::filesystem::path& path);

}  // namespace olmo::store
