#include "config/schedule.h"

#include "support/catch.h"

namespace olmo::config {
namespace {

/// A warm-up of 10 steps of 20 tokens, then a constant rate.
TrainConfig config_of(const std::string& units = "steps") {
  TrainConfig config;
  config.scheduler.name = "constant_with_warmup";
  config.scheduler.units = units;
  config.scheduler.t_warmup = units == "tokens" ? 200 : 10;
  config.scheduler.warmup_min_lr = 0.0;
  config.optimizer.learning_rate = 1.0;
  config.global_train_batch_size = 2;
  config.model.max_sequence_length = 10;
  config.max_grad_norm = 3.0;
  return config;
}

double rate_of(const TrainConfig& config, const CountedStep& at, std::int64_t begin) {
  return learning_rate_of(config, progress_at(config, at, 1), begin);
}

}  // namespace

TEST_CASE("a learning rate follows from the step, or from the tokens up to it", "[config]") {
  CHECK(rate_of(config_of(), {5, 0}, 0) == 0.5);
  CHECK(rate_of(config_of("tokens"), {0, 100}, 0) == 0.5);
  CHECK(rate_of(config_of(), {105, 0}, 100) == 1.0);  // where a run begins does not change it
}

TEST_CASE("a training that takes over weights and counters without moments warms up anew",
          "[config]") {
  TrainConfig config = config_of();
  config.reset_optimizer_state = true;
  CHECK_FALSE(begins_new_warmup(config));  // there is nothing to take over
  config.load_path = "step100";
  CHECK(begins_new_warmup(config));
  CHECK(rate_of(config, {101, 0}, 100) == Approx(0.1));
  CHECK(rate_of(config, {110, 0}, 100) == 1.0);
  config.reset_trainer_state = true;  // its counters begin anew, and so does the schedule itself
  CHECK_FALSE(begins_new_warmup(config));
}

TEST_CASE("the limits that a step sets follow the clip warm-up", "[config]") {
  TrainConfig config = config_of();
  config.scheduler.grad_clip_warmup_steps = 4;
  config.scheduler.grad_clip_warmup_factor = 10.0;
  const auto limit_at = [&](std::int64_t step) {
    return limits_set_by(config, progress_at(config, {step, 0}, 1)).max_grad_norm;
  };
  CHECK(limit_at(4) == 30.0);
  CHECK(limit_at(5) == 3.0);
}

}  // namespace olmo::config
