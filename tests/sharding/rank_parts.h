// Tensors in parts on ranks, for tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sharding/relay_rounds.h"

namespace olmo::sharding {

/// Contiguous parts of nearly equal size of each tensor, one a rank, that begin at pages.
inline std::vector<ByteRange> even_parts(const std::vector<std::int64_t>& sizes, int rank,
                                         int ranks) {
  std::vector<ByteRange> parts;
  for (const auto size : sizes) {
    const auto begin = [&](int of) {
      return of == ranks ? size : size * of / ranks / kLegUnit * kLegUnit;
    };
    parts.push_back({begin(rank), begin(rank + 1)});
  }
  return parts;
}

/// What slices of one buffer leave of tensors that lie in it one after another, each from a page
/// on: most ranks hold nothing of most tensors.
inline std::vector<ByteRange> slice_parts(const std::vector<std::int64_t>& sizes, int rank,
                                          int ranks) {
  const auto pages_of = [](std::int64_t size) { return (size + kLegUnit - 1) / kLegUnit; };
  std::int64_t pages = 0;
  for (const auto size : sizes) pages += pages_of(size);
  const std::int64_t slice = (pages + ranks - 1) / ranks * kLegUnit;
  const std::int64_t from = rank * slice, to = from + slice;
  std::vector<ByteRange> parts;
  std::int64_t begin = 0;
  for (const auto size : sizes) {
    const auto first = std::max(from, begin), last = std::min(to, begin + size);
    parts.push_back(first < last ? ByteRange{first - begin, last - begin} : ByteRange{});
    begin += pages_of(size) * kLegUnit;
  }
  return parts;
}

/// Every rank holds everything.
inline std::vector<ByteRange> copies(const std::vector<std::int64_t>& sizes) {
  std::vector<ByteRange> parts;
  for (const auto size : sizes) parts.push_back({0, size});
  return parts;
}

/// The value of a byte of a tensor.
inline std::byte value_of(std::size_t tensor, std::int64_t byte) {
  return static_cast<std::byte>((byte * 31 + static_cast<std::int64_t>(tensor) * 7 + byte / 251) %
                                256);
}

}  // namespace olmo::sharding
