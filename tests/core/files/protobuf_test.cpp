#include "core/files/protobuf.h"

#include <limits>

#include "core/error.h"
#include "support/catch.h"

namespace olmo {

TEST_CASE("fields have the bytes of protocol buffers' wire format", "[core]") {
  using Message = ProtobufMessage;
  // The first three are the examples of protobuf.dev/programming-guides/encoding.
  CHECK(Message().integer(1, 150).bytes() == "\x08\x96\x01");
  CHECK(Message().text(2, "testing").bytes() == "\x12\x07testing");
  CHECK(Message().message(3, Message().integer(1, 150)).bytes() == "\x1a\x03\x08\x96\x01");
  CHECK(Message().integer(1, -1).bytes() == "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
  CHECK(Message().real(1, 1.0).bytes() == std::string("\x09\0\0\0\0\0\0\xf0\x3f", 9));
  CHECK(Message().single(2, 1.0F).bytes() == std::string("\x15\0\0\x80\x3f", 5));
  CHECK(Message().text(16, "").bytes() == std::string("\x82\x01\0", 3));
}

TEST_CASE("fields are read as they were written, and as nothing else", "[core]") {
  constexpr auto kLowest = std::numeric_limits<std::int64_t>::min();
  const std::string bytes =
      ProtobufMessage().integer(1, kLowest).real(2, -0.5).single(3, 2.5F).text(100, "x\0y").bytes();
  ProtobufFields fields(bytes);
  REQUIRE(fields.next());
  CHECK(fields.integer(1) == kLowest);
  CHECK_FALSE(fields.integer(2));
  CHECK_FALSE(fields.real(1));
  REQUIRE(fields.next());
  CHECK(fields.real(2) == -0.5);
  CHECK_FALSE(fields.integer(2));
  REQUIRE(fields.next());
  CHECK(fields.single(3) == 2.5F);
  CHECK_FALSE(fields.real(3));
  REQUIRE(fields.next());
  CHECK(fields.text(100) == "x");
  CHECK_FALSE(fields.next());
}

TEST_CASE("bytes that are no message are refused", "[core]") {
  const auto read = [](std::string_view bytes) {
    for (ProtobufFields fields(bytes); fields.next();) continue;
  };
  const std::string whole =
      ProtobufMessage().real(1, 1).text(2, "abc").integer(3, 300).single(4, 1).bytes();
  CHECK_NOTHROW(read(whole));
  for (const std::size_t cut : {1, 5, 10, 11, 13, 15, 16, 18, 21}) {
    INFO(cut);
    CHECK_THROWS_AS(read(std::string_view(whole).substr(0, cut)), Error);
  }
  CHECK_THROWS_AS(read("\x0b"), Error);                                              // groups
  CHECK_THROWS_AS(read("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), Error);  // 77 bits
}

}  // namespace olmo
