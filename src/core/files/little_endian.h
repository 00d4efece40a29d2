#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace olmo {

/// The whole number in so many bytes, of at most eight, the lowest one first.
inline std::uint64_t little_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;)
    value = value << 8U | std::to_integer<std::uint64_t>(bytes[i]);
  return value;
}

}  // namespace olmo
