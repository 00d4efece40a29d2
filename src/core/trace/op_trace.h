#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/compute/tensor.h"
#include "core/hash.h"
#include "core/trace/op_digest.h"
#include "core/trace/trace_sum.h"

namespace olmo {

/// Of one piece of an output (core/trace/trace_sum.h).
using TraceSums = std::array<std::uint64_t, kTraceSums>;

/// The hash of an output whose bytes come one part after another.
class OutputHash {
 public:
  OutputHash(TraceFormat format, std::uint64_t size);
  /// Of all parts but the last, the size is a multiple of kOutputBlock.
  void update(std::span<const std::byte> bytes);
  /// All `size` bytes have come.
  [[nodiscard]] Digest finish();

 private:
  void end_piece();

  TraceFormat format_;
  std::uint64_t left_;
  std::size_t in_piece_ = 0;  ///< bytes of the current piece
  TraceSums sums_{};
  Sha256 piece_, all_;
};
inline constexpr std::size_t kOutputBlock = sizeof(TraceSums);

/// Hashes the outputs of a step's operations in the order of the computation, so that two machines
/// can name the first operation on which they part.
class OpTrace {
 public:
  explicit OpTrace(TraceFormat format = TraceFormat::kSums) : format_(format) {}

  /// Adds the tensor's elements, as they are when this is called.
  void add(std::string_view operation, const at::Tensor& output);
  void add(std::string_view operation, double value);
  /// Adds an output of `size` bytes from the sums of its pieces. Only of TraceFormat::kSums.
  void add(std::string_view operation, std::uint64_t size, std::span<const TraceSums> pieces);
  /// Adds an output of this trace's format, all of which has come.
  void add(std::string_view operation, OutputHash& output) { add(operation, output.finish()); }
  /// Adds what another trace of this format has.
  void append(OpDigest entry) { digests_.push_back(std::move(entry)); }

  [[nodiscard]] TraceFormat format() const { return format_; }
  [[nodiscard]] const std::vector<OpDigest>& digests() const { return digests_; }

 private:
  void add(std::string_view operation, Digest digest);

  friend class OpScope;
  TraceFormat format_;
  std::string prefix_;
  std::vector<OpDigest> digests_;
};

/// Adds `name` in front of the names of operations for as long as it lives. Without a trace it does
/// nothing.
class OpScope {
 public:
  OpScope(OpTrace* trace, std::string_view name);
  ~OpScope();
  OpScope(const OpScope&) = delete;
  OpScope& operator=(const OpScope&) = delete;

 private:
  OpTrace* trace_;
  std::size_t outer_ = 0;  ///< length of the prefix outside
};

}  // namespace olmo
