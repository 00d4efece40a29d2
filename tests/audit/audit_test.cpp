#include "audit/audit.h"

#include "support/catch.h"

namespace olmo::audit {
namespace {

AuditedRun steps_1_to(std::int64_t last) {
  AuditedRun recorded;
  for (std::int64_t step = 1; step <= last; ++step) recorded.rows[step].step = step;
  return recorded;
}

}  // namespace

TEST_CASE("sampled stretches lie within the record and come again with their seed", "[audit]") {
  const auto recorded = steps_1_to(20);
  const auto stretches = sample_stretches(recorded, 50, 5, 7);
  REQUIRE(stretches.size() == 50);
  for (const auto& stretch : stretches) {
    CHECK(stretch.first >= 1);
    CHECK(stretch.last == stretch.first + 4);
    CHECK(stretch.last <= 20);
  }
  CHECK(stretches.front().first != stretches.back().first);
  const auto again = sample_stretches(recorded, 50, 5, 7);
  for (std::size_t i = 0; i < 50; ++i) CHECK(again[i].first == stretches[i].first);
  CHECK(sample_stretches(recorded, 1, 100, 7)[0].last == 20);
}

}  // namespace olmo::audit
