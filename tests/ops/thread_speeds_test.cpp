#include "ops/thread_speeds.h"

#include <cmath>
#include <random>
#include <vector>

#include "support/catch.h"

using olmo::ops::begin_of_part;
using olmo::ops::ThreadSpeeds;

namespace {

using Share = ThreadSpeeds::Share;

std::vector<double> all_of(const ThreadSpeeds& speeds, std::int64_t threads) {
  std::vector<double> all;
  for (std::int64_t i = 0; i < threads; ++i) all.push_back(speeds[i]);
  return all;
}

// What threads that do `rates` units a second take for their shares of a job of `tiles` units.
std::vector<Share> shares_of(const ThreadSpeeds& speeds, std::int64_t tiles,
                             const std::vector<double>& rates) {
  const auto weights = all_of(speeds, std::ssize(rates));
  std::vector<Share> shares;
  for (std::int64_t i = 0; i < std::ssize(rates); ++i) {
    const auto work = static_cast<double>(begin_of_part(tiles, weights, i + 1) -
                                          begin_of_part(tiles, weights, i));
    shares.push_back({work, work / rates[static_cast<std::size_t>(i)]});
  }
  return shares;
}

void run(ThreadSpeeds& speeds, int jobs, const std::vector<double>& rates) {
  for (int job = 0; job < jobs; ++job) speeds.learn(shares_of(speeds, 2000, rates));
}

void check_equal_times(const std::vector<Share>& shares) {
  for (const Share& share : shares)
    CHECK(share.seconds == Approx(shares.front().seconds).epsilon(0.01));
}

}  // namespace

TEST_CASE("threads come to take equally long for their shares", "[ops]") {
  const std::vector<double> rates = {1.0e5, 0.6e5, 1.3e5, 0.9e5};
  ThreadSpeeds speeds(4);
  run(speeds, 200, rates);
  check_equal_times(shares_of(speeds, 2000, rates));
}

TEST_CASE("a thread that was held up counts as before when it is not", "[ops]") {
  ThreadSpeeds speeds(2);
  run(speeds, 200, {1e5, 0.4e5});
  CHECK(speeds[1] < 0.9 * speeds[0]);
  run(speeds, 200, {1e5, 1e5});
  check_equal_times(shares_of(speeds, 2000, {1e5, 1e5}));
}

TEST_CASE("one interruption of a thread changes little", "[ops]") {
  ThreadSpeeds speeds(2);
  auto shares = shares_of(speeds, 2000, {1e6, 1e6});  // a millisecond each
  shares[1].seconds += 0.005;
  speeds.learn(shares);
  CHECK(speeds[1] == Approx(speeds[0]).epsilon(0.1));
}

TEST_CASE("what some threads show is taken beside what is known of them", "[ops]") {
  const std::vector<double> rates = {1.2e5, 0.8e5, 1.2e5, 0.8e5};
  ThreadSpeeds speeds(4);
  run(speeds, 200, rates);
  const auto before = all_of(speeds, 4);
  speeds.learn(std::vector<Share>{{100, 1}});  // one thread alone
  speeds.learn(std::vector<Share>{{0, 0}, {0, 0}, {0, 1}, {1, 0}});
  CHECK(all_of(speeds, 4) == before);
  speeds.learn(std::vector<Share>{{120, 1e-3}, {80, 1e-3}});
  for (std::int64_t i = 0; i < 4; ++i)
    CHECK(speeds[i] == Approx(before[static_cast<std::size_t>(i)]).epsilon(0.01));
}

TEST_CASE("speeds stay within their bounds, whatever was measured", "[ops]") {
  std::mt19937 bits(1);
  const auto any = [&] { return std::pow(10.0, static_cast<int>(bits() % 19) - 9); };
  ThreadSpeeds speeds(5);
  for (int i = 0; i < 1000; ++i) {
    std::vector<Share> shares(1 + bits() % 5);
    for (Share& share : shares) share = {any(), any()};
    speeds.learn(shares);
    for (const double speed : all_of(speeds, 5)) {
      CHECK(speed >= ThreadSpeeds::kSlowest);
      CHECK(speed <= ThreadSpeeds::kFastest);
    }
  }
}

TEST_CASE("parts cover their extent in proportion to their weights", "[ops]") {
  std::mt19937 bits(2);
  for (int i = 0; i < 200; ++i) {
    const auto extent = static_cast<std::int64_t>(bits() % 1000);
    std::vector<double> weights(1 + bits() % 9);
    double sum = 0;
    for (double& weight : weights) sum += weight = 0.5 + static_cast<double>(bits() % 4);
    CHECK(begin_of_part(extent, weights, 0) == 0);
    CHECK(begin_of_part(extent, weights, std::ssize(weights)) == extent);
    for (std::int64_t part = 0; part < std::ssize(weights); ++part) {
      const auto size =
          begin_of_part(extent, weights, part + 1) - begin_of_part(extent, weights, part);
      const double fair =
          static_cast<double>(extent) * weights[static_cast<std::size_t>(part)] / sum;
      CHECK(std::abs(static_cast<double>(size) - fair) <= 1);
    }
  }
}
