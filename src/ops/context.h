// What an operation computes with, beside its tensors.
#pragma once

#include <string_view>

#include "core/policy.h"
#include "core/tensor.h"

namespace olmo {
class OpTrace;
}

namespace olmo::ops {

class Workspace;

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
  GpuStream stream;  ///< where the device runs the operation's kernels; null on the CPU
  OpTrace* trace = nullptr;
  Workspace* workspace = nullptr;  ///< scratch memory; null: of the operation's own
  std::string_view name;           ///< must live as long as the call

 private:
  void record(const at::Tensor& output, std::string_view part) const;
};

}  // namespace olmo::ops
