#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <thread>
#include <vector>

#include "core/compute/tensor.h"

namespace olmo {

/// As new_tensor, of zeros. A large one of the host is memory that the system has not given yet: it
/// reads as zeros, nothing is written here, and its first writer waits for its pages.
at::Tensor zero_tensor(at::IntArrayRef shape, at::TensorOptions options);

/// Takes the pages of memory that will be written soon, in threads of its own and in the order
/// given, while others compute: the first write to a page that the system has not given yet waits
/// until it is cleared, and a virtual machine may wait for its host besides. Changes no byte, so
/// that anybody may read and write the memory meanwhile. Nothing happens where the system cannot do
/// it (Linux before 5.14).
class FreshPages {
 public:
  /// Memory that is given back meanwhile does no harm: its place has no pages to be taken, or those
  /// of a new owner. `threads`: at most four are used, and nothing is done for none.
  FreshPages(const std::vector<std::span<std::byte>>& memory, int threads);
  /// What is not taken by then is left to the writers.
  ~FreshPages();
  FreshPages(const FreshPages&) = delete;
  FreshPages& operator=(const FreshPages&) = delete;

  /// Waits until all is taken.
  void wait();

 private:
  void take_all();

  std::vector<std::span<std::byte>> parts_;  ///< whole pages, a few MiB each
  std::atomic<std::size_t> next_{0};         ///< of the parts
  std::vector<std::thread> threads_;
};

}  // namespace olmo
