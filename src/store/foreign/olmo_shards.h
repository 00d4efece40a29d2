#pragma once

#include <filesystem>

#include "store/foreign/find_weights.h"
#include "store/foreign/stored_tensors.h"

namespace olmo::store {

/// The parameters in a folder of OLMo's trainer. Throws as what reads its files (dcp_files.h,
/// torch_file.h, flat_parameters.h, olmo_core_files.h), and as StoredTensors.
StoredTensors open_model_shards(const std::filesystem::path& folder, ShardFormat format);

/// The optimizer's state in such a folder: tensors named `state/NAME/PART`, e.g.
/// `state/transformer.wte.weight/exp_avg`. Throws as open_model_shards.
StoredTensors open_optimizer_shards(const std::filesystem::path& folder, ShardFormat format);

}  // namespace olmo::store
