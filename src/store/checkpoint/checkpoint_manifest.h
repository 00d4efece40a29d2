#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "store/checkpoint/checkpoint.h"

namespace olmo::store {

inline constexpr char kCheckpointFormat[] = "olmo-harness-checkpoint";
inline constexpr char kManifestName[] = "manifest.json";
inline constexpr char kDataFileName[] = "checkpoint.h5";

/// manifest.json in memory.
struct Manifest {
  JsonValue summary;  ///< format, format_version, kind, ephemeral, step, sequence, tokens_seen,
                      ///< run_id, git_revision, created_utc
  std::uint64_t file_bytes = 0;
  Digest structure;  ///< of the bytes of the file that belong to no dataset (structure_digest)
  std::vector<CheckpointDataset> datasets;
};

/// The text of manifest.json; it ends with the digest of itself.
std::string to_text(const Manifest& manifest);

/// Parses and checks a manifest: its own digest, version, names, and that every dataset has the
/// size of its shape, lies in the file and overlaps no other. Throws Error(kDamaged) naming `where`
/// and what is wrong.
Manifest parse_manifest(const std::string& text, const std::string& where);

/// Parses JSON from an untrusted file; what comes back is nested at most 32 deep. Throws
/// Error(kDamaged).
Json parse_untrusted(const std::string& text, const std::string& where);

/// Bytes of a file that belong to no dataset.
struct FileGap {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// The gaps between `datasets` in a file of `file_bytes`, in order: its structure.
std::vector<FileGap> structure_gaps(std::uint64_t file_bytes,
                                    const std::vector<CheckpointDataset>& datasets);

/// SHA-256 of every byte of `file` outside `datasets`: for each gap, in order, its offset, its size
/// and its bytes. Throws Error(kDamaged) unless the file has exactly `file_bytes`.
Digest structure_digest(const std::filesystem::path& file, std::uint64_t file_bytes,
                        const std::vector<CheckpointDataset>& datasets);

/// Over the paths and digests of all tensors, in the order of their paths.
Digest tensors_digest(const std::vector<CheckpointDataset>& datasets);

}  // namespace olmo::store
