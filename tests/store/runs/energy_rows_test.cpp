#include "store/runs/energy_rows.h"

#include "support/catch.h"

namespace olmo::store {
namespace {

EnergyRecord row(std::int64_t attempt, const char* covers, double joules, double seconds) {
  EnergyRecord made;
  made.source = "sensor";
  made.device = "0";
  made.covers = covers;
  made.joules = joules;
  made.seconds = seconds;
  made.samples = 2;
  made.attempt = attempt;
  return made;
}

}  // namespace

TEST_CASE("the energy of a sensor is added over the attempts", "[store]") {
  const auto sums = sum_by_sensor({row(1, "device", 1000, 10), row(2, "device", 300, 5)});
  REQUIRE(sums.size() == 1);
  CHECK(sums[0].joules == 1300);
  CHECK(sums[0].seconds == 15);
  CHECK(sums[0].samples == 4);
}

TEST_CASE("a job's energy is counted from its start, whatever the attempts", "[store]") {
  const auto sums = sum_by_sensor({row(1, "job", 36'000, 100), row(2, "job", 72'000, 200)});
  REQUIRE(sums.size() == 1);
  CHECK(sums[0].joules == 72'000);
  CHECK(sums[0].seconds == 200);
}

TEST_CASE("a sensor that reads nothing adds nothing", "[store]") {
  CHECK_FALSE(is_measured(row(1, "device", 0, 10)));
  CHECK_FALSE(sum_by_sensor({row(1, "device", 0, 10)})[0].joules);
  CHECK(sum_by_sensor({row(1, "device", 0, 10), row(2, "device", 5, 5)})[0].seconds == 5);
}

}  // namespace olmo::store
