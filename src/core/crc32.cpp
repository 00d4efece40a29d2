#include "core/crc32.h"

#include <zlib.h>

namespace olmo {

std::uint32_t crc32_after(std::uint32_t before, std::span<const std::byte> bytes) {
  if (bytes.empty()) return before;  // a null pointer asks zlib for its first value
  return static_cast<std::uint32_t>(
      crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace olmo
