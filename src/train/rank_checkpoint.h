// Checkpoints of a training whose state lies in parts on its ranks. The file is, byte for byte, the
// one that one process would have written, so any number of ranks goes on from it.
//
// Each tensor has an owner among the ranks (sharding/rounds.h). To save, the parts travel to the
// owners, which hash the tensors and write them into one file that all ranks share; rank 0 lays it
// out, and seals and publishes it when all digests have come in. To load, the owners read and
// verify the tensors, and hand the parts out. Each byte is read and verified once, by one rank, and
// what is wrong with any of them is told to all before anything begins.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "dist/communicator.h"
#include "store/checkpoint.h"
#include "train/owned_tensors.h"
#include "train/train_state.h"

namespace olmo::train {

/// All parameters, in the model's order, on every rank; of some it may hold nothing.
using ParameterParts = std::vector<ParameterPart>;

/// The checkpoints of a run folder that all ranks see. Every rank makes one, and makes the same
/// calls in the same order. An error of one rank is thrown by all, and names it.
class RankCheckpoints {
 public:
  /// `ranks` is for this object alone; its calls may come from another thread than the training's.
  RankCheckpoints(std::unique_ptr<dist::Communicator> ranks, std::filesystem::path run_dir,
                  ParameterParts parts);

  [[nodiscard]] dist::Communicator& ranks() { return *ranks_; }

  /// As store::save_checkpoint(). Tensors of the model, and those of the optimizer that have
  /// dimensions, are this rank's parts, in the order of all parameters; scalars are the same on all
  /// ranks. Documents matter on rank 0 alone.
  store::SavedCheckpoint save(const store::CheckpointSnapshot& snapshot,
                              const store::SaveOptions& options);

  /// As read_start(); the tensors are this rank's parts, flat unless there is one rank. If the
  /// checkpoint is of another experiment than `experiment_digest`, it comes without tensors, and
  /// they have not been read.
  Start read(const std::filesystem::path& checkpoint, const std::string& experiment_digest);

 private:
  void read_tensors(const store::CheckpointReader& reader, store::CheckpointContents& contents);

  std::unique_ptr<dist::Communicator> ranks_;
  std::filesystem::path run_dir_;
  ParameterParts parts_;
};

/// Throws Error(kUsage) on all ranks unless each finds in `run_dir` what rank 0 writes there.
void require_shared_folder(dist::Communicator& ranks, const std::filesystem::path& run_dir);

}  // namespace olmo::train
