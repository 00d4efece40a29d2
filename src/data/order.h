// The order in which an epoch shows the instances: OLMo's shuffle, in memory or in a file that
// processes share.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "core/files/input_file.h"

namespace olmo::data {

/// What the order of an epoch depends on (OLMo's IterableDataset).
struct OrderConfig {
  std::uint64_t instances = 0;  ///< N: must be below 2^32 - 1
  std::uint64_t seed = 0;
  bool shuffle = true;
};

/// The order of an epoch: 0..N-1 as uint32, shuffled by PCG64(seed + epoch). Step s (from 0) takes
/// [s*B, (s+1)*B) of it. Throws Error(kInput) if N is too large, Error(kUsage) if seed + epoch
/// overflows.
std::vector<std::uint32_t> build_order(const OrderConfig& config, std::uint64_t epoch);

/// An order of more instances lies in a file. Up to here it takes 64 MiB of each process and a
/// fraction of a second, and needs no place on a disk.
inline constexpr std::uint64_t kInstancesInMemory = std::uint64_t{1} << 24;

// FOLDER/global_indices.epochE.npy: the N numbers as little-endian uint32 without a header, as
// OLMo's train_data/global_indices.npy has them. Beside it, in FILE.json, what it was made from:
// format, version, instances, seed, epoch, shuffle; and `pieces_sha256`, the SHA-256 over those of
// its pieces of 16 Mi numbers. Both are synced and renamed into place, the sidecar last. A step
// reads a stretch of consecutive numbers, so that a map of the file takes few pages of memory.

std::filesystem::path order_path(const std::filesystem::path& folder, std::uint64_t epoch);

/// The order of an epoch in a file.
class OrderFile {
 public:
  /// Numbers [first, first + out.size()). Throws Error(kInput) naming the file if it was cut or
  /// altered since it was opened, as far as that shows: a number that is not below N.
  void read(std::uint64_t first, std::span<std::uint32_t> out) const;
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

 private:
  friend std::optional<OrderFile> open_order_file(const std::filesystem::path&, const OrderConfig&,
                                                  std::uint64_t);
  friend std::optional<std::string> make_order_file(const std::filesystem::path&,
                                                    const OrderConfig&, std::uint64_t,
                                                    const std::stop_token&, int);
  explicit OrderFile(const std::filesystem::path& path)
      : file_(path), size_(file_.bytes().size() / sizeof(std::uint32_t)) {}
  [[nodiscard]] std::string pieces_sha256(int threads) const;

  MappedFile file_;
  std::uint64_t size_;
};

/// The file of an epoch, if it is there, of this config by its sidecar, and as long as that says.
/// What it holds is not looked at: for a process that knows that another of the job has made it, or
/// checked it, with make_order_file.
std::optional<OrderFile> open_order_file(const std::filesystem::path& folder,
                                         const OrderConfig& config, std::uint64_t epoch);

/// Sees to it that the file of an epoch is there and sound. One whose sidecar says something else,
/// or whose content has another digest, or that another user owns or everybody may write to, is not
/// trusted but made again. Returns why the file was made, for the user; nothing if a sound one was
/// there. Takes 4 bytes of memory an instance while it makes one.
///
/// A stop that is requested ends it early: then there is no file, and an Error(kFailure) says so.
/// Throws Error(kFailure) if the disk is full, and as build_order does.
std::optional<std::string> make_order_file(const std::filesystem::path& folder,
                                           const OrderConfig& config, std::uint64_t epoch,
                                           const std::stop_token& stop = {}, int threads = 1);

/// Removes the file of an epoch and its sidecar, if they are there.
void remove_order_file(const std::filesystem::path& folder, std::uint64_t epoch);

}  // namespace olmo::data
