#include "optim/duration.h"

#include "core/error.h"
#include "support/catch.h"

namespace olmo::optim {
namespace {

constexpr Progress kStart{
    .global_step = 0, .tokens_seen = 0, .tokens_per_batch = 100, .batches_per_epoch = 7};

}  // namespace

TEST_CASE("a duration in steps is its number, and in tokens that many batches more", "[optim]") {
  const Duration duration{.value = 20, .unit = Duration::Unit::kSteps};
  Progress progress = kStart;
  progress.global_step = 5;
  progress.tokens_seen = 430;  // the first steps had smaller batches
  CHECK(max_steps(duration, progress) == 20);
  CHECK(max_tokens(duration, progress) == 430 + 15 * 100);
}

TEST_CASE("a token budget is spent in batches of the present size", "[optim]") {
  const Duration duration{.value = 1001, .unit = Duration::Unit::kTokens};
  CHECK(max_steps(duration, kStart) == 11);
  CHECK(max_tokens(duration, kStart) == 1001);
  Progress progress = kStart;
  progress.global_step = 3;
  progress.tokens_seen = 601;
  CHECK(max_steps(duration, progress) == 3 + 4);
  progress.tokens_seen = 2000;
  CHECK(max_steps(duration, progress) == 3);
}

TEST_CASE("epochs are whole batches of the data", "[optim]") {
  const Duration duration{.value = 2, .unit = Duration::Unit::kEpochs};
  CHECK(max_steps(duration, kStart) == 14);
  CHECK(max_tokens(duration, kStart) == 1400);
}

TEST_CASE("the scheduler's clock counts in its own units", "[optim]") {
  const Duration duration{.value = 20, .unit = Duration::Unit::kSteps};
  Progress progress = kStart;
  progress.global_step = 1;
  progress.tokens_seen = 100;
  SchedulerConfig config;
  CHECK(schedule_now(config, progress) == 1);
  CHECK(schedule_end(config, duration, progress) == 20);
  config.units = "tokens";
  CHECK(schedule_now(config, progress) == 100);
  CHECK(schedule_end(config, duration, progress) == 2000);
}

TEST_CASE("a duration that no counter holds is a usage error", "[optim]") {
  const Duration epochs{.value = std::int64_t{1} << 61, .unit = Duration::Unit::kEpochs};
  CHECK_THROWS_AS(max_tokens(epochs, kStart), Error);
  const Duration steps{.value = std::int64_t{1} << 61, .unit = Duration::Unit::kSteps};
  CHECK_THROWS_AS(max_tokens(steps, kStart), Error);
}

}  // namespace olmo::optim
