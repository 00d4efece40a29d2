// What an operation computes with, beside its tensors.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/compute/policy.h"
#include "core/compute/tensor.h"
#include "ops/thread_speeds.h"

namespace olmo {
class OpTrace;
}

namespace olmo::ops {

/// Scratch memory of operations, a piece for each thread, which is kept between calls: fresh pages
/// cost more than the arithmetic on them. It only grows. Whoever calls operations again and again
/// owns one and hands it over in the Context; one operation uses it at a time. How fast the threads
/// are is kept with it.
class Workspace {
 public:
  /// For operations on at most `threads` threads.
  explicit Workspace(int threads)
      : of_thread_(static_cast<std::size_t>(threads)), speeds_(threads) {}

  /// For a thread of parallel_for: at least `floats` floats, on a 64-byte boundary, with
  /// whatever they held; valid until the thread's next call.
  float* reserve(std::size_t floats);

  /// What a thread holds that has reserved so many floats.
  static std::size_t bytes_for(std::size_t floats);
  /// What all threads hold.
  [[nodiscard]] std::size_t bytes() const;

  ThreadSpeeds& speeds() { return speeds_; }

 private:
  struct Free {
    void operator()(float* memory) const;
  };
  struct Piece {
    std::unique_ptr<float, Free> memory;
    std::size_t capacity = 0;
  };
  std::vector<Piece> of_thread_;
  ThreadSpeeds speeds_;
};

/// How the values of an fp32 output are rounded once its sums are whole.
enum class Rounding { kNone, kBf16 };

/// The first argument of every operation. A handful of pointers, made for one call or one pass: it
/// must not outlive what it points to. A policy converts to one that has nothing else.
struct Context {
  Context(const Policy& p);  // NOLINT(google-explicit-constructor)
  Context(const Policy& p, Workspace& w) : Context(p) { workspace = &w; }

  /// The same for one call whose output the trace gets to know as `operation`. A call without a
  /// name leaves no trace.
  [[nodiscard]] Context named(std::string_view operation) const;
  /// Every operation calls it when its output is whole; `part`: "/part" where it has several.
  void traced(const at::Tensor& output, std::string_view part = {}) const {
    if (trace != nullptr && !name.empty()) record(output, part);
  }

  const Policy& policy;
  GpuStream stream;  ///< where a GPU runs the operation's kernels; null is one, too
  OpTrace* trace = nullptr;
  Workspace* workspace = nullptr;  ///< scratch memory; null: of the operation's own
  std::string_view name;           ///< must live as long as the call

 private:
  void record(const at::Tensor& output, std::string_view part) const;
};

/// The workspace of one call: the context's, or one of its own where the context has none.
class CallWorkspace {
 public:
  explicit CallWorkspace(const Context& context);
  float* reserve(std::size_t floats) { return used_.reserve(floats); }
  ThreadSpeeds& speeds() { return used_.speeds(); }

 private:
  std::optional<Workspace> own_;
  Workspace& used_;
};

}  // namespace olmo::ops
