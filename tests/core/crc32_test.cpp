#include "core/crc32.h"

#include <string_view>

#include "support/catch.h"

namespace olmo {

TEST_CASE("a checksum is the standard's, whole or in parts", "[core]") {
  const auto bytes = [](std::string_view text) { return std::as_bytes(std::span(text)); };
  CHECK(crc32_after(0, bytes("123456789")) == 0xCBF43926);  // the check value of CRC-32
  CHECK(crc32_after(crc32_after(0, bytes("1234")), bytes("56789")) == 0xCBF43926);
  CHECK(crc32_after(0, {}) == 0);
  CHECK(crc32_after(7, {}) == 7);
}

}  // namespace olmo
