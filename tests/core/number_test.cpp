#include "core/number.h"

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
