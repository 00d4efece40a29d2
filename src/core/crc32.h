#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace olmo {

/// The checksum that zip files have of their records (CRC-32 of ISO 3309), of bytes that follow
/// those whose checksum is `before`; of the first, 0.
std::uint32_t crc32_after(std::uint32_t before, std::span<const std::byte> bytes);

/// CRC-32C (RFC 3720), the checksum of TensorFlow's records.
std::uint32_t crc32c(std::span<const std::byte> bytes);

}  // namespace olmo
