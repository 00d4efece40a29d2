#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/hash.h"
#include "core/tensor.h"

namespace olmo {

/// What one operation of a step gave.
struct OpDigest {
  std::string operation;  ///< e.g. "micro_batch.0/forward/blocks.3.attention"
  Digest digest;
};

/// How a trace hashes an output. Digests of different formats cannot be compared.
enum class TraceFormat {
  kSha256,  ///< SHA-256 over the SHA-256 of pieces of 1 MiB: of records before format 2
  /// Format 2, fifteen times as fast: SHA-256 over 64-bit sums of the pieces, eight of each, cut to
  /// 24 bytes, after the eight bytes "olmotrc2". A trace finds where two computations part; it need
  /// not withstand a forger, for the hash chain and the hashes of states are SHA-256.
  kSums,
};

/// Of a recorded trace; of an empty one, what new traces have.
TraceFormat format_of(std::span<const OpDigest> trace);

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
  std::array<std::uint64_t, 8> sums_{};
  Sha256 piece_, all_;
};
inline constexpr std::size_t kOutputBlock = 64;

/// Hashes the outputs of a step's operations in the order of the computation, so that two machines
/// can name the first operation on which they part.
class OpTrace {
 public:
  explicit OpTrace(TraceFormat format = TraceFormat::kSums) : format_(format) {}

  /// Adds the tensor's elements, as they are when this is called.
  void add(std::string_view operation, const at::Tensor& output);
  void add(std::string_view operation, double value);
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

/// The first operation on which two traces of one step part.
struct TraceDifference {
  std::string operation;
  std::string reason;  ///< "its output differs", or that one trace lacks it
};

/// Nothing if the traces are equal. They must have one format.
std::optional<TraceDifference> first_difference(std::span<const OpDigest> a,
                                                std::span<const OpDigest> b);

}  // namespace olmo
