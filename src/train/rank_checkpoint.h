// Checkpoints of a training whose state lies in parts on its ranks. The file is, byte for byte, the
// one that one process would have written, so any number of ranks goes on from it.
//
// To save, each rank writes its parts of the tensors into one file that all ranks share; rank 0
// lays it out, and seals and publishes it when all digests have come in. To load, each reads its
// parts. A tensor's digest is made, and verified, by its holders one after another
// (sharding/relay.h), so that each byte is read once, by the rank that needs it, and none travels.
// What is wrong with any of them is told to all before anything begins.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "dist/communicator.h"
#include "store/checkpoint/checkpoint.h"
#include "train/owned_tensors.h"
#include "train/train_state.h"

namespace olmo::train {

/// The checkpoints of a run folder that all ranks see. Every rank makes one, and makes the same
/// calls in the same order. An error of one rank is thrown by all, and names it.
class RankCheckpoints {
 public:
  /// `ranks` is for this object alone; its calls may come from another thread than the training's.
  RankCheckpoints(std::unique_ptr<dist::Communicator> ranks, std::filesystem::path run_dir,
                  ParameterParts parts);

  [[nodiscard]] dist::Communicator& ranks() const { return *ranks_; }

  /// As store::save_checkpoint(). Tensors of the model, and those of the optimizer that have
  /// dimensions, are this rank's parts, in the order of all parameters; scalars are the same on all
  /// ranks. Documents matter on rank 0 alone.
  store::SavedCheckpoint save(const store::CheckpointSnapshot& snapshot,
                              const store::SaveOptions& options);

  /// As read_start(); the tensors are this rank's parts, flat unless there is one rank. A
  /// checkpoint of another experiment than `experiment`, if it is given, comes without tensors,
  /// which have not been read: they may be of another model.
  Start read(const std::filesystem::path& checkpoint,
             const std::optional<std::string>& experiment = std::nullopt);
  /// This rank's parts of the weights alone, of a checkpoint of either kind, or of the newest in a
  /// run's folder.
  NamedTensors read_weights(const std::filesystem::path& path);

 private:
  /// Opens it on every rank and does `use` with it; it has to be the same one everywhere.
  store::CheckpointReader open(const std::filesystem::path& checkpoint,
                               const std::function<void(const store::CheckpointReader&)>& use);
  void read_tensors(const store::CheckpointReader& reader, store::CheckpointContents& contents);

  std::unique_ptr<dist::Communicator> ranks_;
  std::filesystem::path run_dir_;
  ParameterParts parts_;
};

/// The search for the checkpoint at which a training begins: rank 0 alone knows the record, and
/// which checkpoints to try; all ranks read each with it.
class StartSearch {
 public:
  /// `checkpoints` must outlive it. `experiment`: the digest of the training's config.
  StartSearch(RankCheckpoints& checkpoints, std::string experiment)
      : checkpoints_(checkpoints), experiment_(std::move(experiment)) {}

  /// Does `search` on rank 0, which reads checkpoints by read(); the other ranks read the same ones
  /// until it ends. Throws on rank 0 what `search` throws, and on no other rank.
  void run(const std::function<void()>& search);
  /// Of rank 0, in run(). As RankCheckpoints::read; one of another experiment with its tensors only
  /// if `any_experiment`.
  Start read(const std::filesystem::path& checkpoint, bool any_experiment = false);
  /// After run(), on every rank: its part of the checkpoint that rank 0 gives, one that it has
  /// read, or nothing.
  std::optional<Start> share(std::optional<Start> found);

 private:
  RankCheckpoints& checkpoints_;
  Start read_together(const std::filesystem::path& checkpoint, bool any_experiment);

  std::string experiment_;
  std::filesystem::path last_path_;  ///< that was read; empty: none
  std::optional<Start> last_;        ///< what was read there, on ranks other than 0
};

/// Throws Error(kUsage) on all ranks unless each finds in `run_dir` what rank 0 writes there.
void require_shared_folder(dist::Communicator& ranks, const std::filesystem::path& run_dir);

}  // namespace olmo::train
