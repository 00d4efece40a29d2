#include "core/crc32.h"

#include <string>
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

TEST_CASE("CRC-32C is that of RFC 3720", "[core]") {
  const auto sum = [](std::string_view text) { return crc32c(std::as_bytes(std::span(text))); };
  CHECK(sum("123456789") == 0xE3069283);
  CHECK(sum(std::string(32, '\0')) == 0x8A9136AA);
}

}  // namespace olmo
