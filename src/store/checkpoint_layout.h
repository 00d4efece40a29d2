// The HDF5 side of a checkpoint. The library works on a StructureImage in memory and on no file:
// what it makes is written by store/raw_file.h, where every error is ours to handle.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/checkpoint.h"
#include "store/structure_image.h"

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

/// Lays the HDF5 file out in `image`: every group, attribute and dataset, space allocated and no
/// data written; fills in the offsets. `root` are the attributes of `/`. Throws Error(kFailure).
void lay_out_file(StructureImage& image, const Json& root, const CheckpointContents& contents,
                  std::vector<PlannedDataset>& plan);

/// Writes the digests into the datasets' attributes and `complete` = 1, and checks that every
/// dataset is where and what the plan says. Throws Error(kFailure).
void seal_file(StructureImage& image, const std::vector<PlannedDataset>& plan);

}  // namespace olmo::store
