#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "core/hash.h"

namespace olmo::store {

/// Bytes and where they belong in a file. Ranges of one call must not overlap.
struct RawRange {
  std::uint64_t offset = 0;
  std::span<const std::byte> bytes;
};

struct RawWriteResult {
  std::vector<Digest> digests;  ///< one per range, in the order given
  bool direct = false;          ///< at least one range went past the page cache
};

/// Throws Error(kFailure) saying what is needed and what there is, if a new file of `bytes` in
/// `folder` would exceed the free space of the disk or what this process may write. Another process
/// may take the space afterwards.
void check_space(const std::filesystem::path& folder, std::uint64_t bytes);

/// Creates `path` if it is missing, of the size `bytes`, and gives it that much of the disk where
/// the file system can; a full disk or a quota shows here, before anything is written. Throws
/// Error(kFailure).
void reserve_space(const std::filesystem::path& path, std::uint64_t bytes);

/// Writes the ranges into an existing file and hashes each, in parallel: page-aligned parts in
/// large blocks past the page cache where the file system allows it (measured 2.4 against 0.3 GB/s
/// on a virtual disk, and training keeps its caches), the rest through it. The caller syncs. Throws
/// Error(kFailure) naming the path.
RawWriteResult write_and_hash(const std::filesystem::path& path, std::span<const RawRange> ranges,
                              int hash_threads);

}  // namespace olmo::store
