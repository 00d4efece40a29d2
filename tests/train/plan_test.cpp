#include "train/plan.h"

#include <filesystem>

#include <nlohmann/json.hpp>

#include "optim/lr_schedule.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::train;

namespace {

const std::filesystem::path kConfigs = std::filesystem::path(OLMO_SOURCE_DIR) / "configs" / "train";

TrainPlan plan_of(const std::string& name, const std::vector<std::string>& overrides = {},
                  std::optional<std::int64_t> instances = std::nullopt) {
  return make_plan(config::load_config(kConfigs / (name + ".json"), overrides), instances);
}

}  // namespace

TEST_CASE("the plans of OLMo's sizes have OLMo's parameters and FLOPs", "[train]") {
  struct Size {
    const char* name;
    std::int64_t parameters;
    std::int64_t flops;
  };
  for (const auto& size : {Size{"olmo-1b", 1'176'764'416, 7'659'847'680},
                           Size{"olmo-7b", 6'888'095'744, 44'137'709'568},
                           Size{"olmo-65b", 65'584'234'496, 408'787'353'600}}) {
    INFO(size.name);
    const auto plan = plan_of(size.name);
    CHECK(plan.parameters.total == size.parameters);
    CHECK(plan.flops.olmo_forward + plan.flops.olmo_backward == size.flops);
  }
}

TEST_CASE("steps follow from max_duration, as OLMo counts them", "[train]") {
  CHECK(plan_of("tiny").steps == 20);
  CHECK(plan_of("tiny", {"max_duration=1000T"}).steps == 4);  // 256 tokens a step, rounded up
  CHECK_FALSE(plan_of("tiny", {"max_duration=2ep"}).steps);
  CHECK(plan_of("tiny", {"max_duration=2ep"}, 85).steps == 20);  // 10 whole batches of 8
}

TEST_CASE("the planned learning rates are the schedule's own", "[train]") {
  const auto plan = plan_of("tiny", {"max_duration=5000"});
  const auto& config = plan.loaded.config;
  REQUIRE(plan.schedule.size() >= 10);
  CHECK(plan.schedule.size() <= 13);
  CHECK(plan.schedule.front().step == 1);
  CHECK(plan.schedule.back().step == 5000);
  CHECK(plan.schedule.back().tokens == 5000 * 256);
  for (const auto& point : plan.schedule) {
    CHECK(point.learning_rate == olmo::optim::learning_rate_at(config.scheduler,
                                                               config.optimizer.learning_rate,
                                                               point.step, 5000));
  }
}

TEST_CASE("a branch is planned from its checkpoint on", "[train]") {
  const auto loaded =
      config::load_config(kConfigs / "tiny.json",
                          {"max_duration=100000T", "load_path=x", "reset_optimizer_state=true"});
  const auto plan = make_plan(loaded, 80, std::nullopt, {.done = {40, 51200}, .begin = 40});
  CHECK(plan.steps == 231);  // 48,800 tokens more at 256 a step, rounded up
  CHECK(plan.steps_to_come() == 191);
  CHECK(plan.epochs() == 19.1);
  CHECK(plan.schedule.front().step == 41);
  CHECK(plan.schedule.front().tokens == 51456);
  const auto& scheduler = loaded.config.scheduler;
  CHECK(plan.schedule.front().learning_rate ==
        olmo::optim::learning_rate_after_new_warmup(
            scheduler, loaded.config.optimizer.learning_rate, 41, 231, 40));
  CHECK(plan.schedule.back().tokens == 51200 + 191 * 256);
  CHECK(to_json(plan)["goes_on_after_step"] == 40);
}

TEST_CASE("the schedule is shown up to stop_at, and not at all if its end is unknown", "[train]") {
  CHECK(plan_of("tiny", {"stop_at=7"}).schedule.back().step == 7);
  CHECK(plan_of("olmo-20m").schedule.empty());
}

TEST_CASE("text and JSON of a plan hold the config, the figures and the problems", "[train]") {
  const auto plan = plan_of("tiny", {"precision=amp_fp16", "wandb={project: x}"});
  const auto text = to_text(plan);
  for (const auto* part :
       {"\"d_model\": 64", "parameters", "FLOPs per token", "Memory", "256  (8 instances of 32",
        "`wandb` is not honoured", "give precision=amp_bf16", "names no token files"}) {
    INFO(part);
    CHECK(text.find(part) != std::string::npos);
  }
  CHECK(text.find("rounded weights") == std::string::npos);  // kinds that there are none of
  const auto json = to_json(plan);
  for (const auto& kind : memory_kinds())
    CHECK(json["memory_bytes"][kind.key] == plan.memory.*kind.bytes);
  CHECK(json["steps"] == 20);
  CHECK(json["problems"].size() == 2);
  CHECK(json["config"] == to_json(plan.loaded.config));
  CHECK(json["memory_bytes"]["total"] == plan.memory.total());
}

TEST_CASE("a plan shows what is computed again, and the memory that it saves", "[train]") {
  const auto kept = plan_of("olmo-1b"),
             again = plan_of("olmo-1b", {"activation_checkpointing=whole_layer"});
  CHECK(again.memory.saved_activations < kept.memory.saved_activations / 6);
  CHECK(to_text(again).find("(activation_checkpointing: whole_layer)") != std::string::npos);
  CHECK(to_text(kept).find("(activation_checkpointing") == std::string::npos);
  // A resume reads as much as it has moments and weights for: more than steps that keep little.
  CHECK(to_text(kept).find("at a resume") == std::string::npos);
  const auto small =
      plan_of("olmo-1b", {"activation_checkpointing=whole_layer", "save_num_checkpoints_to_keep=0",
                          "device_train_microbatch_size=1", "global_train_batch_size=1"});
  CHECK(to_text(small).find("at a resume") != std::string::npos);
}

TEST_CASE("an optimizer with one moment needs less memory", "[train]") {
  CHECK(plan_of("tiny", {"optimizer.name=lionw"}).memory.moments * 2 ==
        plan_of("tiny").memory.moments);
}
