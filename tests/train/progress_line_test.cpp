#include "train/progress_line.h"

#include "support/catch.h"

TEST_CASE("durations are short and rounded to what matters", "[train]") {
  using olmo::train::format_duration;
  CHECK(format_duration(0) == "0s");
  CHECK(format_duration(59.4) == "59s");
  CHECK(format_duration(59.6) == "1m00s");
  CHECK(format_duration(3599.4) == "59m59s");
  CHECK(format_duration(3725) == "1h02m");
  CHECK(format_duration(200 * 3600.0) == "200h00m");
}
