#pragma once

#include <filesystem>
#include <vector>

#include "store/foreign/tensor_file.h"

namespace olmo::store {

/// True for a file whose name says that it holds tensors of other software (*.safetensors; *.pt,
/// *.pth and *.bin of torch.save), and for a folder with such a file of a whole model, or with the
/// index of its shards.
bool holds_weights(const std::filesystem::path& path);

/// A file; or those of a folder: its `model.safetensors`, else the shards that its
/// `model.safetensors.index.json` names, in the order of their names, else the same of `model.pt`
/// (OLMo's) and `pytorch_model.bin` (Hugging Face's). Throws as SafetensorsFile and TorchFile;
/// Error(kDamaged) also if an index and its shards disagree.
std::vector<TensorFile> open_weights(const std::filesystem::path& path);

}  // namespace olmo::store
