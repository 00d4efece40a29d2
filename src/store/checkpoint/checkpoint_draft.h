// A checkpoint while it is written: one process lays it out and publishes it, any number of
// processes write its tensors.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "store/checkpoint/checkpoint.h"

namespace olmo::store {

/// A tensor without its elements.
struct TensorOutline {
  std::string name;
  std::vector<std::int64_t> shape;
  at::ScalarType type = at::kFloat;
};

/// CheckpointContents without the elements of the tensors.
struct CheckpointOutline {
  CheckpointKind kind = CheckpointKind::kFull;
  JsonValue trainer;
  JsonValue config;
  std::vector<TensorOutline> model;
  std::vector<TensorOutline> optim;
  JsonValue optim_state;
};

/// Throws Error(kFailure) for a tensor that is not contiguous in the main memory.
CheckpointOutline outline_of(const CheckpointContents& contents);

/// RUN_DIR/step{N}-tmp with a file that has its full size, and of which nothing is written yet.
/// Goes again with this object unless it was published.
class CheckpointDraft {
 public:
  /// Throws as save_checkpoint().
  CheckpointDraft(const std::filesystem::path& run_dir, const CheckpointOutline& outline,
                  const SaveOptions& options);
  ~CheckpointDraft();
  CheckpointDraft(const CheckpointDraft&) = delete;
  CheckpointDraft& operator=(const CheckpointDraft&) = delete;

  /// Where the tensors' bytes are to be written.
  [[nodiscard]] const std::filesystem::path& file() const;
  /// The tensors of the outline, model before optimizer, with their places in the file; digests are
  /// not known yet. A large tensor begins on a page, and only its last page may hold bytes of
  /// others.
  [[nodiscard]] std::span<const CheckpointDataset> tensors() const;

  /// Every byte of every tensor has been written; `digests` are theirs. Writes what else the file
  /// holds, syncs it, writes the manifest, and gives the folder its name. Bytes that other machines
  /// wrote must be on the disk already. Throws as save_checkpoint().
  SavedCheckpoint publish(std::span<const Digest> digests);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace olmo::store
