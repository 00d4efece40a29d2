#include "core/compute/fresh_pages.h"

#include <algorithm>
#include <cstdint>
#include <system_error>

#include <ATen/ops/from_blob.h>
#include <ATen/ops/zero.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/compute/named_tensors.h"
#include "core/memory_error.h"

namespace olmo {
namespace {

/// Adds the whole pages of `memory`, in parts that begin where a huge page may.
void add_parts(std::span<std::byte> memory, std::vector<std::span<std::byte>>& parts) {
  constexpr std::size_t kPart = std::size_t{4} << 20;  // whoever maps memory waits for one at most
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  std::size_t at = (page - address % page) % page;
  while (at + page <= memory.size()) {
    const std::size_t to_boundary = kPart - (address + at) % kPart;
    const std::size_t bytes = std::min((memory.size() - at) / page * page, to_boundary);
    parts.push_back(memory.subspan(at, bytes));
    at += bytes;
  }
}

}  // namespace

at::Tensor zero_tensor(at::IntArrayRef shape, at::TensorOptions options) {
  constexpr std::size_t kLarge = std::size_t{4} << 20;
  const auto type = c10::typeMetaToScalarType(options.dtype());
  const auto bytes =
      static_cast<std::size_t>(c10::multiply_integers(shape)) * c10::elementSize(type);
  if (!options.device().is_cpu() || bytes < kLarge) return new_tensor(shape, options).zero_();
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw MemoryError("tensor " + shape_text(shape) + ": there is no memory for its " +
                      std::to_string(bytes) + " bytes");
  }
  // Advice only: a kernel without huge pages refuses, and nothing is lost.
  static_cast<void>(::madvise(memory, bytes, MADV_HUGEPAGE));
  return at::from_blob(
      memory, shape, [bytes](void* at) { ::munmap(at, bytes); }, options);
}

FreshPages::FreshPages(const std::vector<std::span<std::byte>>& memory, int threads) {
  constexpr int kEnough = 4;  // as many clear pages as fast as memory takes them
  if (threads <= 0) return;
  for (const auto& each : memory) add_parts(each, parts_);
  try {
    for (int i = 0; i < std::min(threads, kEnough) && !parts_.empty(); ++i)
      threads_.emplace_back([this] { take_all(); });
  } catch (const std::system_error&) {  // too few threads: the writers take their pages themselves
  }
}

FreshPages::~FreshPages() {
  next_ = parts_.size();
  wait();
}

void FreshPages::wait() {
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

void FreshPages::take_all() {
#if defined(MADV_POPULATE_WRITE)
  for (std::size_t i = next_++; i < parts_.size(); i = next_++)
    if (::madvise(parts_[i].data(), parts_[i].size(), MADV_POPULATE_WRITE) != 0) return;
#endif
}

}  // namespace olmo
