#include "ops/context.h"

#include <cstdlib>
#include <new>

#include <sys/mman.h>

#include "core/compute/gpu.h"
#include "core/compute/parallel.h"
#include "ops/trace_output.h"

namespace olmo::ops {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

}  // namespace

Context::Context(const Policy& p)
    : policy(p), stream(p.gpu != nullptr ? p.gpu->stream() : nullptr) {}

Context Context::named(std::string_view operation) const {
  Context context = *this;
  context.name = operation;
  return context;
}

void Context::record(const at::Tensor& output, std::string_view part) const {
  trace_output(*this, *trace, std::string(name) + std::string(part), output);
}

void Workspace::Free::operator()(float* memory) const { std::free(memory); }

float* Workspace::reserve(std::size_t floats) {
  Piece& piece = of_thread_.at(static_cast<std::size_t>(pool_thread()));
  if (floats <= piece.capacity) return piece.memory.get();
  piece = {};
  if (floats > SIZE_MAX / sizeof(float) - kHugePage) throw std::bad_alloc();
  const std::size_t bytes = bytes_for(floats);
  piece.memory.reset(static_cast<float*>(std::aligned_alloc(kHugePage, bytes)));
  if (piece.memory == nullptr) throw std::bad_alloc();
#if defined(MADV_HUGEPAGE)
  madvise(piece.memory.get(), bytes, MADV_HUGEPAGE);  // advice only: the result does not matter
#endif
  piece.capacity = bytes / sizeof(float);
  return piece.memory.get();
}

std::size_t Workspace::bytes_for(std::size_t floats) {
  return (floats * sizeof(float) + kHugePage - 1) / kHugePage * kHugePage;
}

std::size_t Workspace::bytes() const {
  std::size_t sum = 0;
  for (const Piece& piece : of_thread_) sum += piece.capacity * sizeof(float);
  return sum;
}

CallWorkspace::CallWorkspace(const Context& context)
    : used_(context.workspace != nullptr ? *context.workspace
                                         : own_.emplace(context.policy.threads)) {}

}  // namespace olmo::ops
