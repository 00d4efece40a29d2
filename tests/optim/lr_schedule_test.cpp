#include "optim/lr_schedule.h"

#include <cmath>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/json.h"
#include "support/catch.h"

namespace olmo::optim {
namespace {

SchedulerConfig scheduler_from(const Json& json) {
  SchedulerConfig config;
  const auto optional = [&](const char* key) {
    return json.contains(key) ? std::optional(json.at(key).get<double>()) : std::nullopt;
  };
  config.name = json.at("name").get<std::string>();
  config.t_warmup = json.at("t_warmup").get<double>();
  config.alpha_f = json.value("alpha_f", config.alpha_f);
  config.t_max = optional("t_max");
  config.warmup_min_lr = optional("warmup_min_lr");
  config.grad_clip_warmup_steps = optional("grad_clip_warmup_steps");
  config.grad_clip_warmup_factor = optional("grad_clip_warmup_factor");
  return config;
}

double from_hex(const Json& json) { return std::strtod(json.get<std::string>().c_str(), nullptr); }

// Relative distance; equal values, also two zeros, are 0 apart.
double distance(double a, double b) {
  return a == b ? 0.0 : std::abs(a - b) / std::max(std::abs(a), std::abs(b));
}

// Compares every learning rate and clip limit of a file with ours; the file has one entry per
// schedule in "cases".
void check_schedules(const std::filesystem::path& path, const char* limits_key) {
  double worst = 0.0;
  const Json file = read_json_file(path);
  for (const Json& golden : file.at("cases")) {
    const SchedulerConfig config = scheduler_from(golden.at("scheduler"));
    const double peak = golden.at("initial_lr").get<double>();
    const auto end = golden.at("max_steps").get<std::int64_t>();
    INFO(golden.at("scheduler").dump() << " peak " << peak << " end " << end);
    REQUIRE(problems_of(config, peak).empty());
    for (std::size_t i = 0; i < golden.at("steps").size(); ++i) {
      const auto step = golden.at("steps")[i].get<std::int64_t>();
      INFO("step " << step);
      const double ours =
          golden.contains("begin")
              ? learning_rate_after_new_warmup(config, peak, step, end, golden.at("begin"))
              : learning_rate_at(config, peak, step, end);
      worst = std::max(worst, distance(ours, from_hex(golden.at("lr_hex")[i])));
      CHECK(distance(ours, from_hex(golden.at("lr_hex")[i])) <= 1e-15);
      CHECK(clip_limit_at(config, 1.0, step) == golden.at(limits_key)[i].get<double>());
    }
  }
  UNSCOPED_INFO("largest relative distance " << worst);
  CHECK(worst <= 1e-15);
}

std::string message_of(const SchedulerConfig& config, double learning_rate) {
  return sentences_of(problems_of(config, learning_rate));
}

constexpr Progress kStart{
    .global_step = 0, .tokens_seen = 0, .tokens_per_batch = 100, .batches_per_epoch = 7};

}  // namespace

TEST_CASE("every schedule, warm-up and clip warm-up gives OLMo's values to 1e-15", "[optim]") {
  check_schedules(OLMO_TEST_DATA "/optim/schedules.json", "max_grad_norm");
}

TEST_CASE("the reference schedules are met to 1e-15", "[.golden]") {
  const char* folder = std::getenv("OLMO_GOLDEN_DIR");
  if (folder == nullptr) return;
  check_schedules(std::filesystem::path(folder) / "train/schedules.json", "max_grad_norm_of_1.0");
}

TEST_CASE("the cosine of the schedule is within one ulp of libm's", "[optim]") {
  // alpha_f = 0 and no warm-up leave lr = (1 + cos(pi s / M)) / 2; the absolute error of the cosine
  // shows unreduced.
  SchedulerConfig config;
  config.t_warmup = 0;
  config.alpha_f = 0.0;
  constexpr std::int64_t kEnd = 20011;
  double worst = 0.0;
  for (std::int64_t step = 0; step < kEnd; ++step) {
    const double angle = 0x1.921fb54442d18p+1 * static_cast<double>(step) / kEnd;
    const double expected = (1.0 + std::cos(angle)) / 2.0;
    worst = std::max(worst, std::abs(learning_rate_at(config, 1.0, step, kEnd) - expected));
  }
  CHECK(worst <= 0x1p-53);
}

TEST_CASE("a token schedule is the step schedule stretched", "[optim]") {
  SchedulerConfig steps;
  steps.t_warmup = 10;
  SchedulerConfig tokens = steps;
  tokens.units = "tokens";
  tokens.t_warmup = 10 * 4096;
  for (std::int64_t step = 1; step <= 100; ++step) {
    CHECK(learning_rate_at(tokens, 1e-3, step * 4096, 100 * 4096) ==
          Approx(learning_rate_at(steps, 1e-3, step, 100)).epsilon(1e-14));
  }
}

TEST_CASE("an absent clip limit stays absent during clip warm-up", "[optim]") {
  SchedulerConfig config;
  config.grad_clip_warmup_steps = 10;
  config.grad_clip_warmup_factor = 5.0;
  CHECK_FALSE(clip_limit_at(config, std::nullopt, 5).has_value());
  CHECK(clip_limit_at(config, 0.4, 10) == 2.0);
  CHECK(clip_limit_at(config, 0.4, 11) == 0.4);
}

TEST_CASE("a bad schedule is refused with the key that is wrong", "[optim]") {
  using Catch::Matchers::Contains;
  SchedulerConfig config;
  CHECK(message_of(config, 1e-3).empty());
  SchedulerConfig bad = config;
  bad.name = "cosine";
  CHECK_THAT(message_of(bad, 1e-3), Contains("cosine_with_warmup, linear_with_warmup"));
  bad = config;
  bad.units = "epochs";
  CHECK_THAT(message_of(bad, 1e-3), Contains("scheduler.units"));
  bad = config;
  bad.t_warmup = 1.5;
  CHECK_THAT(message_of(bad, 1e-3), Contains("scheduler.t_warmup"));
  bad = config;
  bad.t_max = -1;
  CHECK_THAT(message_of(bad, 1e-3), Contains("scheduler.t_max"));
  bad = config;
  bad.warmup_min_lr = 1e-3;
  CHECK_THAT(message_of(bad, 1e-3), Contains("scheduler.warmup_min_lr"));
  bad = config;
  bad.name = "inverse_sqrt_with_warmup";
  bad.t_warmup = 0;
  CHECK_THAT(message_of(bad, 1e-3), Contains("`scheduler.t_warmup` must be at least 1, got 0"));
  bad.name = "max_scheduler";
  CHECK_THAT(message_of(bad, 1e-3), Contains("scheduler.t_warmup"));
  bad.name = "constant_with_warmup";
  CHECK(message_of(bad, 1e-3).empty());
  bad = config;
  bad.t_max = bad.t_warmup;
  CHECK_THAT(message_of(bad, 1e-3), Contains("`scheduler.t_max` must be above"));
}

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
