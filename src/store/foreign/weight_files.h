#pragma once

#include <filesystem>

#include "store/foreign/stored_tensors.h"

namespace olmo::store {

/// True for a file whose name says that it holds tensors of other software (*.safetensors; *.pt,
/// *.pth and *.bin of torch.save), and for a folder with such a file of a whole model, with the
/// index of its shards, or with a checkpoint that OLMo's trainer wrote in shards.
bool holds_weights(const std::filesystem::path& path);

/// Those of a file; or of a folder: of its `model.safetensors`, else the shards that its
/// `model.safetensors.index.json` names, in the order of their names, else the same of `model.pt`
/// (OLMo's) and `pytorch_model.bin` (Hugging Face's), else what open_model_shards reads. Throws as
/// SafetensorsFile, TorchFile and open_model_shards; Error(kDamaged) also if an index and its
/// shards disagree.
StoredTensors open_weights(const std::filesystem::path& path);

}  // namespace olmo::store
