#pragma once

#include <cstddef>

namespace olmo::ops {

/// Scratch memory that a thread keeps between calls (fresh pages cost more than the arithmetic on
/// them). It only grows.
class Workspace {
 public:
  Workspace() = default;
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  ~Workspace();

  /// At least `floats` floats, on a 64-byte boundary, with whatever they held; valid until the next
  /// call.
  float* reserve(std::size_t floats);

 private:
  float* data_ = nullptr;
  std::size_t capacity_ = 0;
};

/// The calling thread's workspace. One op uses it at a time, and none keeps the pointer after it
/// returns.
Workspace& thread_workspace();

}  // namespace olmo::ops
