// The folder of a run's checkpoints: which one is the latest, and which ones are kept.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace olmo::store {

/// A complete checkpoint of a run's folder, from its manifest alone.
struct CheckpointEntry {
  std::filesystem::path path;
  std::int64_t step = 0;
  std::string run_id;
  /// Counts the saves into its folder, from 1. It orders checkpoints although clocks may be wrong.
  /// 0: written by an older program, which did not count.
  std::uint64_t sequence = 0;
  std::string created_utc;  ///< ISO 8601, microseconds; orders those without a sequence
  bool ephemeral = false;
};

/// A folder step{N} that is no complete checkpoint.
struct BrokenCheckpoint {
  std::int64_t step = 0;
  std::string why;  ///< naming the file
};

/// All folders step{N} of a run.
struct StepFolders {
  std::vector<CheckpointEntry> whole;  ///< as resolve_checkpoint() prefers them
  std::vector<BrokenCheckpoint> broken;
};

/// The first of `whole` is what resolve_checkpoint() takes, the others follow by falling step.
/// Empty for a folder that is not there.
StepFolders list_step_folders(const std::filesystem::path& run_dir);

/// Complete checkpoints in `run_dir` (sound manifest, file of the stated size), oldest first as
/// they were written.
std::vector<CheckpointEntry> list_checkpoints(const std::filesystem::path& run_dir);

/// The sequence of the next checkpoint that is written to `run_dir`.
std::uint64_t next_sequence(const std::filesystem::path& run_dir);

/// The checkpoint directory that `path` means: itself, the target of a link to one, or the latest
/// complete one of a run's folder. There `latest` decides, unless the same run wrote a later step
/// after it (a crash came between the two); an incomplete target is passed over with a warning.
/// Throws Error(kInput) if there is none.
std::filesystem::path resolve_checkpoint(const std::filesystem::path& path);

/// OLMo's retention: keeps the `keep` newest permanent checkpoints; with `keep` < 1 deletes no
/// permanent one (-1 keeps all; 0 means to OLMo that no periodic ones are written in the first
/// place). Permanent ones of a step divisible by `keep_every` (OLMo's unsharded ones) stay for good
/// and are not counted. Of the ephemeral ones the newest stays, and none once a permanent one is
/// newer. Never deletes the target of `latest`, nor a folder that holds anything that we did not
/// write. Returns what was deleted. Throws Error(kFailure) if the disk refuses.
std::vector<std::filesystem::path> apply_retention(
    const std::filesystem::path& run_dir, int keep,
    std::optional<std::int64_t> keep_every = std::nullopt);

/// Removes what crashed saves and deletions left: step{N}-tmp and step{N}-trash folders that hold
/// nothing but our files. A step{N}-trash that is a whole checkpoint becomes step{N} again if there
/// is none. Only for a process that owns `run_dir`: training does it when it starts,
/// save_checkpoint() before it writes.
void remove_stale(const std::filesystem::path& run_dir);

/// Points `run_dir`/latest at `checkpoint` (a sibling), atomically. Throws Error(kFailure).
void point_latest(const std::filesystem::path& run_dir, const std::filesystem::path& checkpoint);

/// True if `folder` is a directory that holds nothing but the files of a checkpoint, whole or not.
bool holds_only_ours(const std::filesystem::path& folder);

/// Removes the files of a checkpoint from `folder`, then the folder itself if it is empty. Errors
/// are ignored.
void discard_folder(const std::filesystem::path& folder);

}  // namespace olmo::store
