#include "core/crc32.h"

#include <array>

#include <zlib.h>

namespace olmo {
namespace {

/// What each byte adds, for a sum of reflected bits.
constexpr std::array<std::uint32_t, 256> kCastagnoliTable = [] {
  constexpr std::uint32_t kPolynomial = 0x82F63B78;  // its bits turned round
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t rest = i;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? kPolynomial : 0);
    table[i] = rest;
  }
  return table;
}();

}  // namespace

std::uint32_t crc32_after(std::uint32_t before, std::span<const std::byte> bytes) {
  if (bytes.empty()) return before;  // a null pointer asks zlib for its first value
  return static_cast<std::uint32_t>(
      crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::uint32_t crc32c(std::span<const std::byte> bytes) {
  std::uint32_t rest = ~std::uint32_t{0};
  for (const std::byte byte : bytes)
    rest = (rest >> 8) ^ kCastagnoliTable[(rest ^ std::to_integer<std::uint32_t>(byte)) & 0xFF];
  return ~rest;
}

}  // namespace olmo
