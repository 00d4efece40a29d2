#pragma once

#include <filesystem>
#include <optional>

#include "store/foreign/stored_tensors.h"

namespace olmo::store {

/// How OLMo's trainer wrote a checkpoint in shards: its ShardedCheckpointerType
/// (olmo/checkpoint.py).
enum class ShardFormat {
  kTorchNew,     ///< model_and_optim/, of torch.distributed.checkpoint
  kTorchLegacy,  ///< rank0.pt, …, of ShardedTensors
  kLocal,        ///< model/rank0.pt, … and optim/rank0.pt, …, of FSDP's flat parameters
  kOlmoCore,     ///< model/ and optim/, of olmo_core 0.1
};

/// Nothing: the folder has none of these files.
std::optional<ShardFormat> shard_format_of(const std::filesystem::path& folder);

/// The parameters in such a folder. Throws as what reads its files (dcp_files.h, torch_file.h,
/// flat_parameters.h, olmo_core_files.h), and as StoredTensors.
StoredTensors open_model_shards(const std::filesystem::path& folder, ShardFormat format);

/// The optimizer's state in such a folder: tensors named `state/NAME/PART`, e.g.
/// `state/transformer.wte.weight/exp_avg`. Throws as open_model_shards.
StoredTensors open_optimizer_shards(const std::filesystem::path& folder, ShardFormat format);

}  // namespace olmo::store
