// The reference trajectories (made with OLMo's trainer), as far as they need no model: what the
// optimizer's surroundings do in every step. Driven by OLMO_GOLDEN_DIR.

#include <cmath>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "optim/lr_schedule.h"
#include "optim/optimizer.h"
#include "support/catch.h"
#include "support/golden_tensors.h"

namespace olmo::optim {
namespace {

std::optional<double> number(const Json& json, const char* key) {
  return json.at(key).is_null() ? std::nullopt : std::optional(json.at(key).get<double>());
}

SchedulerConfig scheduler_of(const Json& json) {
  SchedulerConfig config;
  config.name = json.at("name").get<std::string>();
  config.units = json.at("units").get<std::string>();
  config.t_warmup = json.at("t_warmup").get<double>();
  config.alpha_f = json.at("alpha_f").get<double>();
  config.t_max = number(json, "t_max");
  config.warmup_min_lr = number(json, "warmup_min_lr");
  config.grad_clip_warmup_steps = number(json, "grad_clip_warmup_steps");
  config.grad_clip_warmup_factor = number(json, "grad_clip_warmup_factor");
  return config;
}

Duration duration_of(const Json& json) {
  if (json.is_number()) return {.value = json.get<std::int64_t>()};
  const auto text = json.get<std::string>();
  const auto unit = text.ends_with("ep")  ? Duration::Unit::kEpochs
                    : text.ends_with('T') ? Duration::Unit::kTokens
                                          : Duration::Unit::kSteps;
  return {.value = static_cast<std::int64_t>(std::stod(text)), .unit = unit};
}

// A trajectory walked step by step.
struct Walk {
  Json run;
  SchedulerConfig scheduler = scheduler_of(run.at("scheduler"));
  Duration duration = duration_of(run.at("max_duration"));
  ClipLimits configured{.max_grad_norm = number(run, "max_grad_norm"),
                        .max_grad_norm_ratio = number(run, "max_grad_norm_ratio")};
  ClipLimits in_force = configured;
  std::map<std::string, float> averages = {};

  void check_limits(const Json& step) {
    CHECK(in_force.max_grad_norm == number(step, "max_grad_norm_used_in_this_step"));
    CHECK(in_force.max_grad_norm_ratio == number(step, "max_grad_norm_ratio_used_in_this_step"));
    const Progress progress{.global_step = step.at("step").get<std::int64_t>(),
                            .tokens_seen = step.at("global_train_tokens_seen").get<std::int64_t>(),
                            .tokens_per_batch = run.at("global_batch").get<std::int64_t>() *
                                                run.at("seq_len").get<std::int64_t>(),
                            .batches_per_epoch = run.at("batches_per_epoch").get<std::int64_t>()};
    CHECK(max_steps(duration, progress) == run.at("max_steps").get<std::int64_t>());
    const std::int64_t now = schedule_now(scheduler, progress);
    const std::int64_t end = schedule_end(scheduler, duration, progress);
    CHECK(end == run.at("scheduler_max").get<std::int64_t>());
    const double peak = run.at("optimizer").at("learning_rate").get<double>();
    CHECK(learning_rate_at(scheduler, peak, now, end) ==
          Approx(step.at("lr").get<double>()).epsilon(1e-15).margin(0));
    in_force = {
        .max_grad_norm = clip_limit_at(scheduler, configured.max_grad_norm, now),
        .max_grad_norm_ratio = clip_limit_at(scheduler, configured.max_grad_norm_ratio, now)};
    CHECK(in_force.max_grad_norm == number(step, "max_grad_norm_set_for_next_step"));
    CHECK(in_force.max_grad_norm_ratio == number(step, "max_grad_norm_ratio_set_for_next_step"));
  }

  // Clips the recorded norms and compares the norm after clipping, the rate and the moving
  // averages.
  // Most steps record no norms of single gradients: there the total stands for all of them, and
  // averages are taken over.
  void check_clipping(const Json& step) {
    if (!step.contains("per_param_grad_norm_before_clip") && in_force.max_grad_norm_ratio) {
      for (const auto& [name, average] : step.at("grad_norm_exp_avg").items())
        averages[name] = average.get<float>();
      return;
    }
    GradNorms norms{.total = step.at("total_grad_norm_before_clip").get<float>(), .each = {}};
    std::vector<std::string> names;
    std::vector<std::optional<float>> stored;
    const Json all = {{"all", norms.total}};
    const Json each = step.value("per_param_grad_norm_before_clip", all);
    for (const auto& [name, norm] : each.items()) {
      names.push_back(name);
      norms.each.push_back(norm.get<float>());
      stored.push_back(averages.contains(name) ? std::optional(averages.at(name)) : std::nullopt);
    }
    const auto betas = run.at("optimizer").at("betas").get<std::array<double, 2>>();
    const ClipPlan plan =
        plan_clip(in_force, betas, step.at("step").get<std::int64_t>(), norms, stored);
    double squares = 0.0;
    for (std::size_t i = 0; i < names.size(); ++i) {
      squares += std::pow(static_cast<double>(plan.coefficients[i]) * norms.each[i], 2);
    }
    CHECK(std::sqrt(squares) ==
          Approx(step.at("grad_norm_after_clip").get<double>()).epsilon(1e-6));
    if (!step.at("clipping_rate").is_null()) {
      CHECK(plan.clipping_rate() == Approx(step.at("clipping_rate").get<double>()).epsilon(1e-6));
    }
    for (std::size_t i = 0; i < plan.grad_norm_averages.size(); ++i) {
      const float average = plan.grad_norm_averages[i];
      if (plan.keep_averages) averages[names[i]] = average;
      const Json& expected = step.at("grad_norm_exp_avg");  // has the block's tensors only
      if (expected.contains(names[i]))
        CHECK(average == Approx(expected.at(names[i]).get<double>()).epsilon(1e-6));
    }
  }
};

void check_groups(const Json& run) {
  const Json& optimizer = run.at("optimizer");
  OptimizerConfig config;
  config.weight_decay = optimizer.at("weight_decay").get<double>();
  config.decay_norm_and_bias = optimizer.at("decay_norm_and_bias").get<bool>();
  config.decay_embeddings = optimizer.at("decay_embeddings").get<bool>();
  std::vector<std::string> names;
  for (const Json& group : run.at("param_groups")) {
    for (const Json& name : group.at("param_names")) names.push_back(name.get<std::string>());
  }
  const auto groups = param_groups(config, names);
  REQUIRE(groups.size() == run.at("param_groups").size());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    CHECK(groups[i].names ==
          run.at("param_groups")[i].at("param_names").get<std::vector<std::string>>());
    CHECK(groups[i].weight_decay == run.at("param_groups")[i].at("weight_decay").get<double>());
  }
}

}  // namespace

TEST_CASE("the trajectories' groups, schedules, limits and clipping are met", "[.golden]") {
  const char* folder = std::getenv("OLMO_GOLDEN_DIR");
  if (folder == nullptr) return;
  const std::string name = GENERATE("olmo1b_like", "olmo7b_like", "olmo7b0724_like",
                                    "adaptive_clip", "filter_selective", "lionw");
  INFO(name);
  const auto path = std::filesystem::path(folder) / "train" / name;
  Walk walk{.run = read_json_file(path / "trajectory.json")};
  check_groups(walk.run);
  for (const Json& step : walk.run.at("steps")) {
    INFO("step " << step.at("step"));
    walk.check_clipping(step);
    walk.check_limits(step);
  }
  const auto weights = test::read_golden_tensors(path / "final.safetensors").tensors;
  CHECK(
      grad_norms(Policy{}, weights).total ==
      Approx(walk.run.at("steps").back().at("param_norm_after_step").get<double>()).epsilon(1e-6));
}

}  // namespace olmo::optim
