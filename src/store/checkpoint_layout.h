// The HDF5 side of a checkpoint: the only user of the HDF5 library, and only on files that this
// process has just made.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "store/checkpoint.h"

namespace olmo::store {

/// One dataset to be: its description (offset still unknown) and its bytes.
struct PlannedDataset {
  CheckpointDataset dataset;
  const void* data = nullptr;
};

/// Everything of `contents` as datasets, in the order of the manifest. `documents` receives the
/// JSON texts that the plan points into. Throws Error(kFailure) for a name that cannot be stored, a
/// tensor that is not contiguous CPU memory of a known dtype, a duplicate, or a number that JSON
/// has no word for.
std::vector<PlannedDataset> plan_datasets(const CheckpointContents& contents,
                                          std::vector<std::string>& documents);

/// More than the file of `plan` can need, and more than its structure alone can.
std::uint64_t file_size_bound(const std::vector<PlannedDataset>& plan);
std::uint64_t structure_size_bound(const std::vector<PlannedDataset>& plan);

/// Creates the HDF5 file with every group, attribute and dataset, space allocated and no data
/// written; fills in the offsets. `root` are the attributes of `/`. Throws Error(kFailure).
void lay_out_file(const std::filesystem::path& path, const Json& root,
                  const CheckpointContents& contents, std::vector<PlannedDataset>& plan);

/// Writes the digests into the datasets' attributes and `complete` = 1, and checks that every
/// dataset is where and what the plan says. Throws Error(kFailure).
void seal_file(const std::filesystem::path& path, const std::vector<PlannedDataset>& plan);

}  // namespace olmo::store
