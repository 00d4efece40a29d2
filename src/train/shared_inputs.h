#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dist/agreement.h"
#include "dist/communicator.h"
#include "store/runs/run_records.h"
#include "train/preparation.h"

namespace olmo::train {

/// As describe_inputs() on each rank. Those of one machine that have the very same files (by inode,
/// size and time of the last change) share the work: each file is hashed by one of them. Throws on
/// all ranks alike if one cannot read its files, or a sidecar disagrees. Collective.
std::vector<store::InputRecord> describe_shared_inputs(dist::Communicator& ranks,
                                                       const std::vector<InputFile>& files);

/// Throws Error(kUsage) on all ranks, which names rank and file, unless the files of all ranks hold
/// the same. Nothing is read where all ranks see the very same files. Collective.
void require_same_files(dist::Communicator& ranks, const std::vector<InputFile>& files);
/// What require_same_files compares, for dist::require_same: contents in their order, whatever the
/// files are called.
std::vector<dist::Fact> facts_of_inputs(const std::vector<store::InputRecord>& inputs);

/// The rank that hashes each file for rank `rank`: one of those that have its key. `sizes`: of the
/// files, which are dealt so that those ranks read about as much.
std::vector<int> readers_of(int rank, const std::vector<std::string>& keys,
                            std::span<const std::uint64_t> sizes);

}  // namespace olmo::train
