#include "optim/duration.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/error.h"

namespace olmo::optim {
namespace {

constexpr double kLargestCount = 0x1p62;

[[noreturn]] void refuse(std::string_view text) {
  throw Error(ErrorKind::kUsage,
              "max_duration: expected a number of steps, of tokens (\"2e12T\") or of epochs (\"2ep\"), got \"" +
                  std::string(text) + "\"");
}

// Python's int(float(text)), or int(text) where a fraction or an exponent is not allowed.
std::int64_t parse_count(std::string_view number, bool whole, std::string_view text) {
  while (number.ends_with(' ')) number.remove_suffix(1);
  while (number.starts_with(' ')) number.remove_prefix(1);
  std::int64_t count = 0;
  const auto integer = std::from_chars(number.data(), number.data() + number.size(), count);
  if (integer.ec == std::errc{} && integer.ptr == number.data() + number.size()) {
    if (count < 0 || static_cast<double>(count) > kLargestCount) refuse(text);
    return count;
  }
  double value = 0.0;
  const auto real = std::from_chars(number.data(), number.data() + number.size(), value);
  const bool sound = real.ec == std::errc{} && real.ptr == number.data() + number.size() &&
                     value >= 0.0 && value <= kLargestCount;
  if (whole || !sound) refuse(text);
  return static_cast<std::int64_t>(value);
}

// a + b and a * b of counts, never beyond what 64 bits hold.
std::int64_t add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) refuse("a duration beyond 2^63");
  return sum;
}

std::int64_t multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) refuse("a duration beyond 2^63");
  return product;
}

}  // namespace

Duration Duration::parse(std::string_view text) {
  if (text.ends_with("ep")) {
    return {.unit = Unit::kEpochs, .count = parse_count(text.substr(0, text.size() - 2), true, text)};
  }
  if (text.ends_with('T')) {
    return {.unit = Unit::kTokens, .count = parse_count(text.substr(0, text.size() - 1), false, text)};
  }
  return {.unit = Unit::kSteps, .count = parse_count(text, false, text)};
}

std::string Duration::text() const {
  const char* suffix = unit == Unit::kEpochs ? "ep" : unit == Unit::kTokens ? "T" : "";
  return std::to_string(count) + suffix;
}

std::int64_t max_steps(const Duration& duration, const Progress& progress) {
  switch (duration.unit) {
    case Duration::Unit::kSteps:
      return duration.count;
    case Duration::Unit::kEpochs:
      return multiply(duration.count, progress.batches_per_epoch);
    case Duration::Unit::kTokens: {
      const std::int64_t remaining = std::max<std::int64_t>(duration.count - progress.tokens_seen, 0);
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
      return duration.count;
    case Duration::Unit::kEpochs:
      return multiply(multiply(duration.count, progress.batches_per_epoch), progress.tokens_per_batch);
    case Duration::Unit::kSteps: {
      const std::int64_t steps = std::max<std::int64_t>(duration.count - progress.global_step, 0);
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
