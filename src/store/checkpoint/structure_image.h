// A checkpoint file's structure in memory: what the HDF5 library writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include <hdf5.h>

namespace olmo::store {

/// A file of any size of which only the pages that were written take memory: the structure of a
/// checkpoint is kilobytes, spread over gigabytes of tensors that the HDF5 library never touches.
class StructureImage {
 public:
  void write(std::uint64_t offset, std::span<const std::byte> bytes);
  /// What was never written is zero.
  void read(std::uint64_t offset, std::span<std::byte> into) const;
  void resize(std::uint64_t size) { size_ = size; }
  void clear();
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

 private:
  std::map<std::uint64_t, std::vector<std::byte>> pages_;  // by page number
  std::uint64_t size_ = 0;
};

// The HDF5 library's file driver for a StructureImage.

/// Makes `access` open `image` instead of a file on a disk; `image` outlives every file opened with
/// it. Lays out as the library's own driver does. Returns a negative number if the library refuses.
///
/// The library meets no disk here. After a write error it keeps a file that it can neither write
/// nor give up, and crashes when the process exits.
herr_t use_structure_image(hid_t access, StructureImage& image);

/// Keeps the library from cleaning up at exit, which it may not survive after an error. To be
/// called before any other function of the library.
void skip_cleanup_at_exit();

}  // namespace olmo::store
