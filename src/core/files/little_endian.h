#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace olmo {

/// The whole number in so many bytes, of at most eight, the lowest one first.
inline std::uint64_t little_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;)
    value = value << 8U | std::to_integer<std::uint64_t>(bytes[i]);
  return value;
}
inline std::uint64_t little_endian(std::string_view bytes) {
  return little_endian(std::as_bytes(std::span(bytes)));
}

/// Appends the lowest bytes of a number, the lowest one first.
inline void append_little_endian(std::string& bytes, std::uint64_t value, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i, value >>= 8) bytes += static_cast<char>(value & 0xFF);
}

}  // namespace olmo
