#include "core/text/utc_time.h"

#include "support/catch.h"

TEST_CASE("a time before 1970 has the digits of its second, too", "[core]") {
  const auto text = [](std::int64_t milliseconds, int digits = 3) {
    return olmo::utc_text(
        std::chrono::system_clock::time_point(std::chrono::milliseconds(milliseconds)), digits);
  };
  CHECK(text(1500) == "1970-01-01T00:00:01.500Z");
  CHECK(text(1500, 6) == "1970-01-01T00:00:01.500000Z");
  CHECK(text(-1) == "1969-12-31T23:59:59.999Z");
  CHECK(text(-86'400'000) == "1969-12-31T00:00:00.000Z");
}
