// The HDF5 side of a checkpoint. The library works on a StructureImage in memory and on no file:
// what it makes is written by store/checkpoint/raw_file.h, where every error is ours to handle.
#pragma once

#include <string>
#include <vector>

#include "store/checkpoint/checkpoint.h"
#include "store/checkpoint/checkpoint_draft.h"
#include "store/checkpoint/structure_image.h"

namespace olmo::store {

/// All that a checkpoint's file is to hold.
struct FilePlan {
  /// In the order of the manifest: the tensors, then the documents. Offsets are unknown before
  /// lay_out_file().
  std::vector<CheckpointDataset> datasets;
  std::vector<std::string> documents;  ///< the texts of the last datasets

  [[nodiscard]] std::size_t tensors() const { return datasets.size() - documents.size(); }
};

/// Everything of `outline` as datasets. Throws Error(kFailure) for a name or a type that cannot be
/// stored, a duplicate, or a number that JSON has no word for.
FilePlan plan_file(const CheckpointOutline& outline);

/// Lays the HDF5 file out in `image`: every group, attribute and dataset, space allocated and no
/// data written; fills in the offsets. `root` are the attributes of `/`. Throws Error(kFailure).
void lay_out_file(StructureImage& image, const Json& root, const CheckpointOutline& outline,
                  FilePlan& plan);

/// Writes the digests into the datasets' attributes and `complete` = 1, and checks that every
/// dataset is where and what the plan says. Throws Error(kFailure).
void seal_file(StructureImage& image, const std::vector<CheckpointDataset>& datasets);

}  // namespace olmo::store
