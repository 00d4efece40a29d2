#include "exports/wire.h"

#include "support/catch.h"

using namespace olmo::exports;

TEST_CASE("the checksums are those of zlib and of RFC 3720", "[exports]") {
  CHECK(Crc32(Crc32::kZlib).sum("123456789") == 0xCBF43926);
  CHECK(Crc32(Crc32::kCastagnoli).sum("123456789") == 0xE3069283);
  CHECK(Crc32(Crc32::kCastagnoli).sum(std::string(32, '\0')) == 0x8A9136AA);
  const Crc32 zlib(Crc32::kZlib);
  CHECK(zlib.sum("6789", zlib.sum("12345")) == 0xCBF43926);
}

TEST_CASE("fields have the bytes of protocol buffers' wire format", "[exports]") {
  // The first three are the examples of protobuf.dev/programming-guides/encoding.
  CHECK(Message().integer(1, 150).bytes() == "\x08\x96\x01");
  CHECK(Message().text(2, "testing").bytes() == "\x12\x07testing");
  CHECK(Message().message(3, Message().integer(1, 150)).bytes() == "\x1a\x03\x08\x96\x01");
  CHECK(Message().integer(1, -1).bytes() == "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
  CHECK(Message().real(1, 1.0).bytes() == std::string("\x09\0\0\0\0\0\0\xf0\x3f", 9));
  CHECK(Message().single(2, 1.0F).bytes() == std::string("\x15\0\0\x80\x3f", 5));
  CHECK(Message().text(16, "").bytes() == std::string("\x82\x01\0", 3));
}
