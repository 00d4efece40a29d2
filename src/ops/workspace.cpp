#include "ops/workspace.h"

#include <cstdlib>
#include <new>

#include <sys/mman.h>

namespace olmo::ops {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

}  // namespace

Workspace::~Workspace() { std::free(data_); }

float* Workspace::reserve(std::size_t floats) {
  if (floats <= capacity_) return data_;
  std::free(data_);
  data_ = nullptr;
  capacity_ = 0;
  if (floats > SIZE_MAX / sizeof(float) - kHugePage) throw std::bad_alloc();
  const std::size_t bytes = (floats * sizeof(float) + kHugePage - 1) / kHugePage * kHugePage;
  data_ = static_cast<float*>(std::aligned_alloc(kHugePage, bytes));
  if (data_ == nullptr) throw std::bad_alloc();
#if defined(MADV_HUGEPAGE)
  madvise(data_, bytes, MADV_HUGEPAGE);  // advice only: the result does not matter
#endif
  capacity_ = bytes / sizeof(float);
  return data_;
}

Workspace& thread_workspace() {
  thread_local Workspace workspace;
  return workspace;
}

}  // namespace olmo::ops
