#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

namespace olmo::ops {

struct Context;

/// Scratch memory of operations, a piece for each thread, which is kept between calls: fresh pages
/// cost more than the arithmetic on them. It only grows. Whoever calls operations again and again
/// owns one and hands it over in the Context; one operation uses it at a time.
class Workspace {
 public:
  /// For operations on at most `threads` threads.
  explicit Workspace(int threads) : of_thread_(static_cast<std::size_t>(threads)) {}

  /// For a thread of at::parallel_for: at least `floats` floats, on a 64-byte boundary, with
  /// whatever they held; valid until the thread's next call.
  float* reserve(std::size_t floats);

 private:
  struct Free {
    void operator()(float* memory) const;
  };
  struct Piece {
    std::unique_ptr<float, Free> memory;
    std::size_t capacity = 0;
  };
  std::vector<Piece> of_thread_;
};

/// The workspace of one call: the context's, or one of its own where the context has none.
class CallWorkspace {
 public:
  explicit CallWorkspace(const Context& context);
  float* reserve(std::size_t floats) { return used_.reserve(floats); }

 private:
  std::optional<Workspace> own_;
  Workspace& used_;
};

}  // namespace olmo::ops
