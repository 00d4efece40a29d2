#include "core/trace/op_digest.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace olmo {
namespace {

/// What a digest of TraceFormat::kSums begins with: by chance a SHA-256 never does.
constexpr std::array<std::uint8_t, 8> kMark = {'o', 'l', 'm', 'o', 't', 'r', 'c', '2'};

}  // namespace

TraceFormat format_of(std::span<const OpDigest> trace) {
  const auto marked = [](const OpDigest& each) {
    return std::equal(kMark.begin(), kMark.end(), each.digest.bytes.begin());
  };
  // Any: one digest may have been altered.
  return trace.empty() || std::ranges::any_of(trace, marked) ? TraceFormat::kSums
                                                             : TraceFormat::kSha256;
}

Digest marked(Digest digest) {
  std::copy_backward(digest.bytes.begin(), digest.bytes.end() - kMark.size(), digest.bytes.end());
  std::ranges::copy(kMark, digest.bytes.begin());
  return digest;
}

std::optional<TraceDifference> first_difference(std::span<const OpDigest> a,
                                                std::span<const OpDigest> b) {
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (i >= a.size()) return TraceDifference{b[i].operation, "only the second trace has it"};
    if (i >= b.size()) return TraceDifference{a[i].operation, "only the first trace has it"};
    if (a[i].operation != b[i].operation) {
      return TraceDifference{a[i].operation,
                             "the second trace has " + b[i].operation + " in its place"};
    }
    if (a[i].digest != b[i].digest) return TraceDifference{a[i].operation, "its output differs"};
  }
  return std::nullopt;
}

}  // namespace olmo
