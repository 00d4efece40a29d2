#include "train/rank_plan.h"

#include <atomic>

#include <ATen/Parallel.h>
#include <nlohmann/json.hpp>

#include "core/compute/libtorch.h"
#include "dist/thread_ranks.h"
#include "support/catch.h"
#include "support/temporary_directory.h"
#include "train/small_run.h"
#include "train/stepper.h"
#include "train/train_state.h"

namespace olmo::train {
namespace {

using Words = std::vector<std::string>;

/// Of four blocks, in micro-batches of two sequences.
config::TrainConfig config_of(const std::filesystem::path& tokens, const Words& settings) {
  Words all = {"model.n_layers=4", "device_train_microbatch_size=2"};
  all.insert(all.end(), settings.begin(), settings.end());
  return small_config(tokens, all);
}

bool equal(const sharding::StepTraffic::Kind& planned, const dist::Traffic& before,
           const dist::Traffic& after, dist::Collective kind) {
  return planned.calls == after.of(kind).calls - before.of(kind).calls &&
         planned.bytes == after.of(kind).bytes - before.of(kind).bytes;
}

/// Ranks of which a step sent what the formula says, and that hold what the plan says.
struct Agreeing {
  std::atomic<int> traffic = 0, memory = 0;
};

void run_and_compare(const config::TrainConfig& config, int size, int nodes, Agreeing& agreeing) {
  config::Cluster cluster;
  cluster.devices_per_node = (size + nodes - 1) / nodes;
  const RankPlan plan = plan_ranks(config, size, cluster);
  dist::run_ranks(size, [&](dist::Communicator& ranks) {
    at::set_num_threads(1);
    Policy policy = resolve_policy("portable", "auto", 1);
    policy.mixed_precision = config.mixed_precision();
    Stepper stepper(config, policy, data::BatchSource(config::batch_config(config)), ranks, nodes);
    stepper.init_weights();
    stepper.update(stepper.gradients());
    const dist::Traffic before = stepper.traffic();
    stepper.update(stepper.gradients());
    const dist::Traffic after = stepper.traffic();
    const auto planned =
        sharding::traffic_of_step(stepper.units().layout().units(),
                                  {.ranks = size,
                                   .strategy = plan.strategy,
                                   .micro_batches = config.micro_batches(),
                                   .micro_batch = config.micro_batch(),
                                   .bf16 = config.mixed_precision() == MixedPrecision::kMixed},
                                  ranks.rank());
    if (equal(planned.all_gathers(), before, after, dist::Collective::kAllGather) &&
        equal(planned.all_to_alls(), before, after, dist::Collective::kAllToAll) &&
        (ranks.rank() > 0 || planned.bytes() == plan.traffic.bytes()))
      ++agreeing.traffic;
    const auto weights = stepper.units().weight_bytes();
    const auto gradients = stepper.units().gradient_bytes();
    // A rank that never has a micro-batch rounds no leaf, and has no memory for it.
    if (weights.parts == plan.memory.weights && weights.masters == plan.memory.masters &&
        weights.slots == plan.memory.gathered && gradients.trees == plan.memory.sums &&
        (ranks.rank() < config.micro_batches() ? gradients.leaves == plan.memory.leaves
                                               : gradients.leaves <= plan.memory.leaves) &&
        gradients.received <= plan.memory.received)
      ++agreeing.memory;
  });
}

config::TrainConfig official(const std::string& name, const Words& settings) {
  return config::load_config(OLMO_SOURCE_DIR "/configs/train/" + name + ".json", settings).config;
}

config::Cluster cluster_named(const std::string& name) {
  return config::read_cluster(OLMO_SOURCE_DIR "/configs/clusters/" + name + ".json");
}

}  // namespace

TEST_CASE("the counters and the memory of real steps equal the plan, under every strategy",
          "[train]") {
  const test::TemporaryDirectory folder;
  const auto tokens = write_tokens(folder);
  const std::string strategy = GENERATE("ddp", "FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD",
                                        "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2");
  const std::string precision = GENERATE("fp32", "amp_bf16");
  for (const auto& [size, micro_batches] :
       {std::pair{1, 3}, {2, 4}, {3, 5}, {4, 6}, {4, 8}, {6, 4}}) {
    const int nodes = size % 2 == 0 ? 2 : 1;
    INFO(strategy << ", " << precision << ", " << size << " ranks, " << micro_batches
                  << " micro-batches");
    Words settings = {"precision=" + precision,
                      "global_train_batch_size=" + std::to_string(2 * micro_batches)};
    settings.push_back(strategy == "ddp" ? "distributed_strategy=ddp"
                                         : "fsdp.sharding_strategy=" + strategy);
    Agreeing agreeing;
    run_and_compare(config_of(tokens, settings), size, nodes, agreeing);
    CHECK(agreeing.traffic == size);
    CHECK(agreeing.memory == size);
  }
}

TEST_CASE("a rank's copy for checkpoints is that of a run that saves", "[train]") {
  const auto plan = [](const Words& settings) {
    return plan_ranks(config_of("tokens.npy", settings), 2, {}).memory;
  };
  const auto saves = plan({"save_interval=4"}), saves_none = plan({"save_interval=5"});
  CHECK(saves.checkpoint_copy > 0);
  CHECK(saves_none.checkpoint_copy == 0);
}

TEST_CASE("a plan that does not fit says which setting would", "[train]") {
  const auto cluster = cluster_named("mosaicml-a100");
  const auto config = official("olmo-7b", {"precision=amp_bf16"});
  CHECK(plan_ranks(config, 216, cluster).problems.empty());
  const auto alone = plan_ranks(config, 8, cluster);
  REQUIRE(alone.problems.size() == 1);
  CHECK_THAT(alone.problems[0],
             Catch::Matchers::Contains("a device has 40.00 GiB; what would fit: "));
  CHECK_THAT(alone.problems[0], Catch::Matchers::Contains(" ranks"));
  const auto copies = plan_ranks(
      official("olmo-7b", {"precision=amp_bf16", "distributed_strategy=ddp"}), 216, cluster);
  REQUIRE(copies.problems.size() == 1);
  CHECK_THAT(copies.problems[0], Catch::Matchers::Contains("fsdp.sharding_strategy=FULL_SHARD"));
  // Nothing is enough by itself.
  const auto large = plan_ranks(official("olmo-65b", {}), 16, cluster_named("lumi-mi250x"));
  REQUIRE(large.problems.size() == 1);
  CHECK_THAT(large.problems[0],
             Catch::Matchers::Contains("activation_checkpointing=whole_layer on ") &&
                 Catch::Matchers::EndsWith(" ranks"));
}

TEST_CASE("OLMo's models are planned for GPUs: what lies there, and what on their machines",
          "[train]") {
  struct Case {
    const char *config, *cluster, *device;
    int ranks;
  };
  for (const auto& [name, cluster, device, ranks] :
       {Case{"olmo-1b", "h100-sxm", "cuda", 8}, Case{"olmo-7b", "lumi-mi250x", "rocm", 64}}) {
    INFO(name);
    const auto config =
        official(name, {"precision=amp_bf16", "numerics=fast", "device=" + std::string(device)});
    const auto plan = plan_ranks(config, ranks, cluster_named(cluster));
    CHECK(plan.problems.empty());
    const std::string text = to_text(plan, cluster_named(cluster));
    CHECK_THAT(text, Catch::Matchers::Contains("Memory of a rank, its GPU's") &&
                         Catch::Matchers::Contains("NCCL's buffers") &&
                         Catch::Matchers::Contains("of a node's 8 ranks"));
    const Json memory = to_json(plan).at("memory_bytes");
    CHECK(memory.at("on_device").get<std::int64_t>() + memory.at("on_host").get<std::int64_t>() ==
          memory.at("total"));
    CHECK(memory.at("on_host") ==
          plan.memory.data + plan.memory.checkpoint_copy + plan.memory.process);
  }
}

TEST_CASE("a plan for GPUs that the memory of a node does not hold says so", "[train]") {
  auto cluster = cluster_named("lumi-mi250x");
  cluster.node_memory_bytes = 8.0 * (1 << 30);
  const auto plan = [&](const std::string& device) {
    return plan_ranks(official("olmo-1b", {"precision=amp_bf16", "device=" + device}), 16, cluster);
  };
  const auto on_gpus = plan("rocm");
  REQUIRE(on_gpus.problems.size() == 1);
  CHECK_THAT(on_gpus.problems[0], Catch::Matchers::Contains("8 ranks of a node need ") &&
                                      Catch::Matchers::Contains(" of its own, it has 8.00 GiB"));
  const auto notes = plan("cpu").notes;
  CHECK_THAT(notes.back(), Catch::Matchers::Contains("device=rocm plans"));
}

TEST_CASE("ways to fit pass over numbers of ranks that cannot share the model", "[train]") {
  auto cluster = cluster_named("mosaicml-a100");
  cluster.devices_per_node = 5;  // 24 ranks lie on 5 nodes
  const auto plan =
      plan_ranks(official("olmo-7b", {"precision=amp_bf16", "fsdp.sharding_strategy=HYBRID_SHARD"}),
                 6, cluster);
  REQUIRE(plan.problems.size() == 1);
  CHECK_THAT(plan.problems[0], Catch::Matchers::Contains("what would fit: "));
}

TEST_CASE("the time of a step is the longer of computing and sending, and the update", "[train]") {
  const auto config = official("olmo-7b", {"precision=amp_bf16"});
  auto cluster = cluster_named("lumi-mi250x");
  const auto plan = plan_ranks(config, 1024, cluster);
  REQUIRE(plan.time);
  CHECK(plan.nodes == 128);
  CHECK(plan.time->compute == Approx(plan.flops / (191.5e12 * 0.36)));
  CHECK(plan.time->step() ==
        Approx(std::max(plan.time->compute, plan.time->transfer) + plan.time->update));
  // All but 7 of the 1023 others are on other nodes.
  const double outside =
      static_cast<double>(plan.traffic.weights.bytes + plan.traffic.leaves.bytes) * 1016 / 1023;
  CHECK(plan.time->transfer >= outside / 12.5e9);
  CHECK(plan.time->transfer <= 1.2 * outside / 12.5e9);
  cluster.network_bytes_per_second.reset();
  const auto unknown = plan_ranks(config, 1024, cluster);
  CHECK_FALSE(unknown.time);
  CHECK(unknown.time_missing == "network_bytes_per_second");
  CHECK(plan_ranks(config, 8, cluster).time);  // one node needs no network
}

TEST_CASE("ranks that get no micro-batch, or wait in the last round, are told", "[train]") {
  const auto config = official("olmo-7b", {"device_train_microbatch_size=8"});
  const auto count = static_cast<int>(config.micro_batches());
  const auto idle = plan_ranks(config, 2 * count, {});
  REQUIRE(idle.notes.size() == 1);
  CHECK(idle.notes[0].starts_with("no work for " + std::to_string(count) + " ranks:"));
  CHECK(plan_ranks(config, count, {}).notes.empty());
  CHECK(plan_ranks(config, count - 1, {}).notes.size() == 1);
}

TEST_CASE("a plan as JSON has each kind of memory and traffic, and they sum up", "[train]") {
  const auto plan = plan_ranks(official("olmo-65b", {}), 1024, cluster_named("lumi-mi250x"));
  const Json json = to_json(plan);
  std::int64_t memory = 0;
  for (const auto& [key, value] : json.at("memory_bytes").items())
    if (key != "total" && key != "on_device" && key != "on_host")
      memory += value.get<std::int64_t>();
  CHECK(memory == json.at("memory_bytes").at("total"));
  CHECK_THAT(to_text(plan, cluster_named("lumi-mi250x")),
             Catch::Matchers::Contains("1024 on 128 nodes of LUMI") &&
                 Catch::Matchers::Contains("max(compute, transfer) + update"));
}

}  // namespace olmo::train
