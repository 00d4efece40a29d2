// A checkpoint file's structure in memory: what the HDF5 library writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

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

}  // namespace olmo::store
