#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "store/foreign/tensor_file.h"

namespace olmo::store {

/// What tells of the files of a torch.distributed.checkpoint.
inline constexpr const char* kDcpMetadata = ".metadata";

/// The tensors of a folder that torch.distributed.checkpoint (DCP) wrote: FOLDER/.metadata, the
/// pickle of a Metadata (torch/distributed/checkpoint/metadata.py), and files of the ranks in
/// which each shard lies as torch.save writes it, at the place that .metadata tells. Names are
/// those of the flat state_dict. What is no tensor is passed over, and tensors whose names do not
/// begin with `prefix`: the shards of the others are not looked at.
///
/// Throws Error(kInput) if a file cannot be opened, or a shard is compressed or is not some of its
/// tensor's rows; Error(kDamaged) naming the file, and the tensor, if .metadata is none or names
/// places that are not there; and as TorchArchive.
std::vector<TensorFile> open_dcp(const std::filesystem::path& folder, std::string_view prefix = {});

}  // namespace olmo::store
