#pragma once

#include <filesystem>
#include <optional>
#include <thread>

#include "store/checkpoint.h"

namespace olmo::store {

/// Saves checkpoints while training goes on: save_async() copies the tensors and returns; a thread
/// writes the copy. The copy lives in memory that is allocated and touched once and used again by
/// every save. One checkpoint is in flight at most. Not thread-safe: one owner calls it.
class CheckpointWriter {
 public:
  explicit CheckpointWriter(std::filesystem::path run_dir);
  /// Waits for the save in flight; an error that nobody has taken by wait() is logged.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Copies `contents` (in parallel) and begins to write it. Waits first for the save in flight,
  /// and returns that one's result if wait() had not taken it yet; throws that one's error before
  /// anything new is begun.
  std::optional<SavedCheckpoint> save_async(const CheckpointContents& contents,
                                            const SaveOptions& options = {});

  /// Waits for the save in flight and returns its result, or nothing if there is none. Throws its
  /// error.
  std::optional<SavedCheckpoint> wait();

  /// True if a save has ended whose result (or error) wait() has not taken yet.
  [[nodiscard]] bool finished() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace olmo::store
