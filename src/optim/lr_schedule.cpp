#include "optim/lr_schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "core/error.h"
#include "core/text/text.h"

namespace olmo::optim {
namespace {

constexpr double kPi = 0x1.921fb54442d18p+1;
constexpr double kPiLow = 0x1.1a62633145c07p-53;  // pi - kPi

// sin and cos of high + low for |high| <= pi/4 by their Taylor series; the parts that round are
// kept apart, so that the error stays near half an ulp.
double sin_reduced(double high, double low) {
  constexpr std::array<double, 8> kTerms = {
      1.0 / 355687428096000, -1.0 / 1307674368000, 1.0 / 6227020800, -1.0 / 39916800,
      1.0 / 362880,          -1.0 / 5040,          1.0 / 120,        -1.0 / 6};
  const double z = high * high;
  double sum = 0.0;
  for (const double term : kTerms) sum = std::fma(sum, z, term);
  return high + std::fma(z * high, sum, low * (1.0 - 0.5 * z));
}

double cos_reduced(double high, double low) {
  constexpr std::array<double, 7> kTerms = {
      1.0 / 20922789888000, -1.0 / 87178291200, 1.0 / 479001600, -1.0 / 3628800,
      1.0 / 40320,          -1.0 / 720,         1.0 / 24};
  const double z = high * high;
  const double z_low = std::fma(high, high, -z);
  double sum = 0.0;
  for (const double term : kTerms) sum = std::fma(sum, z, term);
  const double head = 1.0 - 0.5 * z;
  const double tail = ((1.0 - head) - 0.5 * z) - 0.5 * z_low - high * low;
  return head + std::fma(z * z, sum, tail);
}

// cos(x) for 0 <= x <= pi, within 1 ulp and the same bits everywhere: libm's differ between
// machines.
double portable_cos(double x) {
  const double quarter = x < 0.25 * kPi ? 0.0 : x < 0.75 * kPi ? 1.0 : 2.0;
  const double rest = x - quarter * (0.5 * kPi);  // exact
  const double correction = -quarter * (0.5 * kPiLow);
  const double high = rest + correction;
  const double low = (rest - high) + correction;
  if (quarter == 0.0) return cos_reduced(high, low);
  return quarter == 1.0 ? -sin_reduced(high, low) : -cos_reduced(high, low);
}

struct Point {
  double peak;  // learning_rate
  double now;
  double warm;   // t_warmup
  double end;    // t_max, else the end of the run
  double floor;  // learning_rate * alpha_f
};

double progress(const Point& point) { return (point.now - point.warm) / (point.end - point.warm); }

double half_cosine(const Point& point) {
  const double angle = kPi * (point.now - point.warm) / (point.end - point.warm);
  return (point.peak - point.floor) * (1.0 + portable_cos(angle)) / 2.0;
}

double cosine(const Point& point) {
  return point.now >= point.end ? point.floor : point.floor + half_cosine(point);
}

double linear(const Point& point) {
  if (point.now >= point.end) return point.floor;
  return point.peak - (point.peak - point.floor) * progress(point);
}

double cosine_linear_envelope(const Point& point) {
  if (point.now >= point.end) return point.floor;
  return point.floor + (1.0 - progress(point)) * half_cosine(point);
}

double inverse_sqrt(const Point& point) {
  return point.peak * std::sqrt(point.warm / std::max(point.warm, point.now));
}

double larger_of_cosine_and_inverse_sqrt(const Point& point) {
  return std::max(cosine(point), inverse_sqrt(point));
}

double constant(const Point& point) { return point.peak; }

struct Schedule {
  const char* name;
  double (*after_warmup)(const Point&);
  bool warms_up;
  bool needs_warmup;
};

constexpr std::array<Schedule, 7> kSchedules = {{
    {"cosine_with_warmup", cosine, true, false},
    {"linear_with_warmup", linear, true, false},
    {"inverse_sqrt_with_warmup", inverse_sqrt, true, true},
    {"max_scheduler", larger_of_cosine_and_inverse_sqrt, true, true},
    {"constant", constant, false, false},
    {"cosine_linear_envelope", cosine_linear_envelope, true, false},
    {"constant_with_warmup", constant, true, false},
}};

const Schedule& find_schedule(const std::string& name) {
  std::string known;
  for (const Schedule& schedule : kSchedules) {
    if (name == schedule.name) return schedule;
    known += known.empty() ? "" : ", ";
    known += schedule.name;
  }
  throw Error(ErrorKind::kUsage,
              "scheduler.name: expected one of " + known + "; got \"" + name + "\"");
}

double linear_warmup(const SchedulerConfig& config, double peak, double now) {
  const double first = config.warmup_min_lr.value_or(peak * 0.10);
  return first + (peak - first) * std::min(now, config.t_warmup) / config.t_warmup;
}

void check_time(ConfigChecks& checks, const char* key, double value) {
  constexpr double kLargest = 0x1p53;  // whole numbers are exact up to here
  checks.expect(value >= 0.0 && value <= kLargest && std::floor(value) == value, key,
                "must be a whole number from 0 to 2^53, got " + number_text(value));
}

/// Values at which the formulas below divide by 0, turn around or stay at 0.
void check_shape(ConfigChecks& checks, const SchedulerConfig& config, const Schedule& schedule) {
  if (config.t_max && *config.t_max <= config.t_warmup) {
    checks.add("t_max", "must be above `scheduler.t_warmup`, got " + number_text(*config.t_max) +
                            " and " + number_text(config.t_warmup));
  }
  if (schedule.needs_warmup && config.t_warmup == 0.0) {
    checks.add("t_warmup", "must be at least 1, got 0: " + config.name +
                               " is a multiple of the square root of the warm-up, so that the "
                               "learning rate would always be 0");
  }
}

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

std::span<const std::string_view> schedule_names() {
  static constexpr auto kNames = [] {
    std::array<std::string_view, kSchedules.size()> names;
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = kSchedules[i].name;
    return names;
  }();
  return kNames;
}

std::vector<ConfigProblem> problems_of(const SchedulerConfig& config, double learning_rate) {
  ConfigChecks checks("scheduler.");
  const bool known = checks.one_of("name", config.name, schedule_names());
  checks.one_of("units", config.units, kScheduleUnits);
  check_time(checks, "t_warmup", config.t_warmup);
  if (config.t_max) check_time(checks, "t_max", *config.t_max);
  if (config.grad_clip_warmup_steps)
    check_time(checks, "grad_clip_warmup_steps", *config.grad_clip_warmup_steps);
  checks.positive("grad_clip_warmup_factor", config.grad_clip_warmup_factor);
  checks.at_least("alpha_f", config.alpha_f, 0);
  if (const auto& first = config.warmup_min_lr) {
    checks.expect(*first >= 0.0 && *first < learning_rate, "warmup_min_lr",
                  "must lie in [0, `optimizer.learning_rate`), got " + number_text(*first));
  }
  if (known) check_shape(checks, config, find_schedule(config.name));
  return checks.take();
}

double learning_rate_at(const SchedulerConfig& config, double learning_rate, std::int64_t now,
                        std::int64_t end) {
  const Schedule& schedule = find_schedule(config.name);
  const auto time = static_cast<double>(now);
  if (schedule.warms_up && time < config.t_warmup) {
    return linear_warmup(config, learning_rate, time);
  }
  return schedule.after_warmup({.peak = learning_rate,
                                .now = time,
                                .warm = config.t_warmup,
                                .end = config.t_max.value_or(static_cast<double>(end)),
                                .floor = learning_rate * config.alpha_f});
}

double learning_rate_after_new_warmup(const SchedulerConfig& config, double learning_rate,
                                      std::int64_t now, std::int64_t end, std::int64_t begin) {
  const auto warm = begin + static_cast<std::int64_t>(config.t_warmup);
  if (now < begin) return 0.0;
  if (now >= warm) return learning_rate_at(config, learning_rate, now, end);
  const double reached = learning_rate_at(config, learning_rate, warm, end);
  return reached * static_cast<double>(now - begin) / static_cast<double>(warm - begin);
}

std::optional<double> clip_limit_at(const SchedulerConfig& config, std::optional<double> configured,
                                    std::int64_t now) {
  const bool warming = config.grad_clip_warmup_steps && config.grad_clip_warmup_factor &&
                       static_cast<double>(now) <= *config.grad_clip_warmup_steps;
  if (!configured || !warming) return configured;
  return *config.grad_clip_warmup_factor * *configured;
}

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
