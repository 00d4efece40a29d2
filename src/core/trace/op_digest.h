#pragma once

#include <optional>
#include <span>
#include <string>

#include "core/hash.h"

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

/// Makes the digest of an output one of TraceFormat::kSums.
Digest marked(Digest digest);

/// The first operation on which two traces of one step part.
struct TraceDifference {
  std::string operation;
  std::string reason;  ///< "its output differs", or that one trace lacks it
};

/// Nothing if the traces are equal. They must have one format.
std::optional<TraceDifference> first_difference(std::span<const OpDigest> a,
                                                std::span<const OpDigest> b);

}  // namespace olmo
