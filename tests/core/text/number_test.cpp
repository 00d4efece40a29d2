#include "core/text/number.h"

#include <cmath>
#include <cstdint>
#include <string>

#include "support/catch.h"

using olmo::parse_number;

TEST_CASE("a number is all of a word, and within its type", "[core]") {
  CHECK(parse_number<std::int64_t>("-12") == -12);
  CHECK(parse_number<std::uint64_t>("18446744073709551615") == UINT64_MAX);
  CHECK(parse_number<double>("2.5e-3") == 2.5e-3);
  CHECK(std::isinf(parse_number<double>("inf").value()));
  for (const std::string none : {"", " 1", "1 ", "+1", "1.0", "0x1", "9223372036854775808"})
    CHECK_FALSE(parse_number<std::int64_t>(none));
  CHECK_FALSE(parse_number<std::uint64_t>("-1"));
  for (const std::string none : {"", "1,5", "1e999", "1 s"})
    CHECK_FALSE(parse_number<double>(none));
}

TEST_CASE("numbers have the same bits, or are others that compare alike", "[core]") {
  CHECK(olmo::same_bits(NAN, NAN));
  CHECK_FALSE(olmo::same_bits(0.0, -0.0));
  CHECK_FALSE(olmo::same_bits(1.0, std::nextafter(1.0, 2.0)));
}

TEST_CASE("digits are grouped in threes before the point, whatever the sign", "[core]") {
  CHECK(olmo::grouped(0) == "0");
  CHECK(olmo::grouped(-999) == "-999");
  CHECK(olmo::grouped(-1000) == "-1,000");
  CHECK(olmo::grouped(INT64_MIN) == "-9,223,372,036,854,775,808");
  CHECK(olmo::grouped("1234567.2345") == "1,234,567.2345");
  CHECK(olmo::grouped("") == "");
}

TEST_CASE("digits are those of ASCII", "[core]") {
  std::string digits;
  for (int byte = 0; byte < 256; ++byte)
    if (olmo::is_digit(static_cast<char>(byte))) digits += static_cast<char>(byte);
  CHECK(digits == "0123456789");
}
