#pragma once

#include <filesystem>

#include "store/foreign/tensor_file.h"

namespace olmo::store {

/// Whether the values of flat parameters are compared with their checksums when they are opened:
/// their pieces have none of their own. Not where only the places are asked for.
enum class FlatValues { kChecked, kUnread };

/// The shards of parameters in a rank's file of OLMo's LocalShardedCheckpointer: FSDP's flat
/// parameters, in which those of a module lie one behind the other, cut into as many pieces as
/// there are ranks (torch/distributed/fsdp/_flat_param.py; that of torch 2.0 told the cuts in
/// another way). Names are without the wrappers of FSDP.
///
/// Throws Error(kInput) if the file holds none; Error(kDamaged) naming the file, and the
/// parameter, if a piece is outside of its flat parameter, or that does not have its checksum; and
/// as TorchFile.
TensorFile open_flat_parameters(const std::filesystem::path& model_file,
                                FlatValues values = FlatValues::kChecked);

/// The optimizer's state beside it, as `state/NAME/PART`: of each parameter the values at the
/// places that the rank's file of parameters tells.
TensorFile open_flat_state(const std::filesystem::path& optimizer_file,
                           const TensorFile& parameters);

}  // namespace olmo::store
