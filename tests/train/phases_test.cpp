#include "train/phases.h"

#include <thread>

#include "support/catch.h"

namespace olmo::train {
namespace {

void pass_some_time() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }

dist::Traffic nothing_sent() { return {}; }

dist::Traffic traffic_of(double gather, double exchange, std::int64_t bytes) {
  dist::Traffic traffic;
  traffic.kinds[static_cast<std::size_t>(dist::Collective::kAllGather)] = {1, bytes, gather};
  traffic.kinds[static_cast<std::size_t>(dist::Collective::kAllToAll)] = {1, 2 * bytes, exchange};
  return traffic;
}

TEST_CASE("what is in no other phase is compute", "[train]") {
  PhaseClock clock(nothing_sent);
  clock.begin();
  {
    const auto reading = clock.in(Phase::kData);
    pass_some_time();
  }
  pass_some_time();
  const StepTimes times = clock.end();
  CHECK(times.of(Phase::kData) >= 0.002);
  CHECK(times.of(Phase::kCompute) >= 0.002);
  CHECK(times.of(Phase::kGather) == 0);
  CHECK(times.own() == times.of(Phase::kData) + times.of(Phase::kCompute));
}

TEST_CASE("waits and bytes are those of the step alone", "[train]") {
  dist::Traffic traffic = traffic_of(5, 6, 100);
  PhaseClock clock([&] { return traffic; });
  clock.begin();
  traffic = traffic_of(3605.25, 6.5, 160);
  const StepTimes times = clock.end();
  CHECK(times.of(Phase::kGather) == 3600.25);
  CHECK(times.of(Phase::kExchange) == 0.5);
  CHECK(times.gathered_bytes == 60);
  CHECK(times.exchanged_bytes == 120);
  CHECK(times.of(Phase::kCompute) == 0);  // no more time has passed than was waited for
}

TEST_CASE("the wait at the end of a step is told with the next one", "[train]") {
  PhaseClock clock(nothing_sent);
  clock.begin();
  clock.end();
  {
    const auto waiting = clock.in(Phase::kWait);
    pass_some_time();
  }
  clock.begin();
  CHECK(clock.end().of(Phase::kWait) >= 0.002);
  clock.begin();
  CHECK(clock.end().of(Phase::kWait) == 0);
}

TEST_CASE("what is done between steps is of none, and a save waits for other ranks within its time",
          "[train]") {
  using Clock = PhaseClock::Clock;
  const auto between = [](Clock::time_point start, Clock::time_point end) {
    return std::chrono::duration<double>(end - start).count();
  };
  const bool saves = GENERATE(false, true);
  dist::Traffic traffic = traffic_of(5, 6, 100);
  PhaseClock clock([&] { return traffic; });
  const auto start = Clock::now();
  clock.begin();
  double aside = 0;
  {
    const auto scope = saves ? clock.in(Phase::kSave) : clock.aside();
    const auto inside = Clock::now();
    traffic = traffic_of(7, 8, 150);
    pass_some_time();
    aside = between(inside, Clock::now());
  }
  const StepTimes times = clock.end();
  CHECK(times.gathered_bytes == 0);
  CHECK(times.exchanged_bytes == 0);
  CHECK(times.of(Phase::kGather) == 0);
  CHECK(times.of(Phase::kExchange) == 0);
  CHECK((times.of(Phase::kSave) >= 0.002) == saves);
  CHECK(times.of(Phase::kCompute) <= between(start, Clock::now()) - aside);
}

}  // namespace
}  // namespace olmo::train
