#pragma once

#include <filesystem>
#include <vector>

#include "store/foreign/tensor_file.h"

namespace olmo::store {

/// What tells of the files of a checkpoint of olmo_core.
inline constexpr const char* kOlmoCoreMetadata = "metadata.json";

/// The tensors of a folder that olmo_core 0.1 wrote (olmo_core/distributed/checkpoint.py):
/// FOLDER/metadata.json, which tells the shape of each tensor and which of its values each rank's
/// safetensors file holds.
///
/// Throws Error(kInput) if a file cannot be opened, or a shard's values do not lie one after the
/// other; Error(kDamaged) naming the file, and the tensor, if metadata.json is none, or does not
/// tell of what is in the files; and as SafetensorsFile.
std::vector<TensorFile> open_olmo_core(const std::filesystem::path& folder);

}  // namespace olmo::store
