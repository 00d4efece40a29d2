#include "config/run_columns.h"

#include "support/catch.h"

using namespace olmo::config;

namespace {

constexpr char kConfig[] = R"({"seed": 7, "global_train_batch_size": 4,
  "device_train_microbatch_size": 2,
  "model": {"d_model": 8, "n_heads": 2, "n_layers": 1, "mlp_hidden_size": 16,
            "max_sequence_length": 16, "vocab_size": 100, "embedding_size": 128,
            "eos_token_id": 0, "pad_token_id": 1, "weight_tying": true,
            "layer_norm_with_affine": false, "include_bias": false},
  "max_duration": )";

std::optional<std::int64_t> steps_of(const std::string& duration, const std::string& more = "") {
  return run_columns(kConfig + duration + more + "}")->max_steps;
}

}  // namespace

TEST_CASE("a config says the seed, parameters, tokens of a step and steps of its run", "[config]") {
  const auto columns = run_columns(std::string(kConfig) + "50}");
  REQUIRE(columns);
  CHECK(columns->seed == 7);
  CHECK(columns->tokens_per_step == 64);
  CHECK(columns->n_parameters == 128 * 8 + 4 * 8 * 8 + 16 * 8 + 8 * 8);
  CHECK(columns->max_steps == 50);
  CHECK_FALSE(run_columns(R"({"a key of a newer program": 1})"));
  CHECK(why_unreadable(std::string(kConfig) + "50}").empty());
  CHECK(why_unreadable(R"({"a key of a newer program": 1, "seed": "x"})").find("a key of a") !=
        std::string::npos);
  CHECK(why_unreadable(R"({"a key of a newer program": 1, "seed": "x"})").find('\n') ==
        std::string::npos);
}

TEST_CASE("the instances of an epoch follow from the sizes of the token files", "[config]") {
  const auto columns = run_columns(std::string(kConfig) + R"(50, "data": {"paths": ["a", "b"]}})");
  REQUIRE(columns);
  const auto instances = [&](std::vector<std::int64_t> bytes) {
    return instances_of(columns->config, bytes);
  };
  CHECK(instances({32 * 7 + 31, 32 * 5}) == 12);  // instances of 32 bytes
  CHECK(instances({32 * 7 + 31, 32 * 4 + 31}) == 11);
  CHECK(instances({31, 31}) == 0);
  CHECK_FALSE(instances({32 * 7}));
}

TEST_CASE("the last step follows from steps and tokens, and from epochs only with the data",
          "[config]") {
  CHECK(steps_of(R"("65T")") == 2);
  CHECK(steps_of("50", R"(, "stop_at": 20)") == 20);
  CHECK_FALSE(steps_of(R"("2ep")"));
}

TEST_CASE("a strategy is known by its name in the config, and means nothing to one rank",
          "[config]") {
  TrainConfig config;
  config.distributed_strategy = "fsdp";
  config.fsdp->sharding_strategy = "SHARD_GRAD_OP";
  CHECK(strategy_name(config, 4) == "SHARD_GRAD_OP");
  CHECK(strategy_name(config, 1) == "single");
  config.fsdp.reset();
  CHECK(strategy_name(config, 4) == "FULL_SHARD");
  config.distributed_strategy = std::nullopt;
  CHECK(strategy_name(config, 4) == "ddp");
}
