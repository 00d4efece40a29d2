#include "optim/duration.h"

#include <algorithm>

#include "core/error.h"

namespace olmo::optim {
namespace {

[[noreturn]] void refuse() {
  throw Error(ErrorKind::kUsage, "max_duration: expected at most 2^63 tokens in all, got more");
}

std::int64_t add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) refuse();
  return sum;
}

std::int64_t multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) refuse();
  return product;
}

}  // namespace

std::int64_t max_steps(const Duration& duration, const Progress& progress) {
  switch (duration.unit) {
    case Duration::Unit::kSteps:
      return duration.value;
    case Duration::Unit::kEpochs:
      return multiply(duration.value, progress.batches_per_epoch);
    case Duration::Unit::kTokens: {
      const std::int64_t remaining =
          std::max<std::int64_t>(duration.value - progress.tokens_seen, 0);
      OLMO_CHECK(progress.tokens_per_batch > 0);
      const std::int64_t steps = remaining / progress.tokens_per_batch +
                                 (remaining % progress.tokens_per_batch != 0 ? 1 : 0);
      return add(progress.global_step, steps);
    }
  }
  OLMO_CHECK(false);
}

std::int64_t max_tokens(const Duration& duration, const Progress& progress) {
  switch (duration.unit) {
    case Duration::Unit::kTokens:
      return duration.value;
    case Duration::Unit::kEpochs:
      return multiply(multiply(duration.value, progress.batches_per_epoch),
                      progress.tokens_per_batch);
    case Duration::Unit::kSteps: {
      const std::int64_t steps = std::max<std::int64_t>(duration.value - progress.global_step, 0);
      return add(progress.tokens_seen, multiply(steps, progress.tokens_per_batch));
    }
  }
  OLMO_CHECK(false);
}

std::int64_t schedule_now(const SchedulerConfig& config, const Progress& progress) {
  return config.units == "tokens" ? progress.tokens_seen : progress.global_step;
}

std::int64_t schedule_end(const SchedulerConfig& config, const Duration& duration,
                          const Progress& progress) {
  return config.units == "tokens" ? max_tokens(duration, progress) : max_steps(duration, progress);
}

}  // namespace olmo::optim
