// Training steps on ranks: every bit is that of one process.
#include "train/stepper.h"

#include <mutex>

#include <ATen/Parallel.h>
#include <nlohmann/json.hpp>

#include "core/compute/libtorch.h"
#include "data/batch.h"
#include "evaluation/evaluation.h"
#include "evaluation/session.h"
#include "ops/gpu/emulated.h"
#include "ops/gpu/fake/device.h"
#include "support/catch.h"
#include "support/rank_worlds.h"
#include "support/temporary_directory.h"
#include "train/small_run.h"

namespace olmo::train {
namespace {

using Words = std::vector<std::string>;

config::TrainConfig config_of(const std::filesystem::path& tokens, const Words& settings) {
  Words all = {"model.layer_norm_type=rms", "model.layer_norm_with_affine=true", "max_grad_norm=1",
               "softmax_auxiliary_loss=true", "device_train_microbatch_size=1"};
  all.insert(all.end(), settings.begin(), settings.end());
  return small_config(tokens, all);
}

/// What a training of two steps gave.
struct Trained {
  std::vector<store::StepRecord> rows;
  std::vector<store::StateHash> hashes;
  std::vector<OpDigest> trace;  ///< of the second step
};

Policy policy_of(const config::TrainConfig& config) {
  Policy policy = resolve_policy("portable", "auto", 1);
  policy.mixed_precision = config.mixed_precision();
  return policy;
}

Trained trained(Stepper& stepper) {
  stepper.init_weights();
  Trained result;
  result.rows.push_back(stepper.update(stepper.gradients()));
  OpTrace trace;
  const auto gradients = stepper.gradients(&trace);
  result.rows.push_back(stepper.update(gradients, &trace));
  result.hashes = stepper.state_hashes();
  result.trace = trace.digests();
  return result;
}

Trained on_one_process(const config::TrainConfig& config) {
  Stepper stepper(config, policy_of(config), data::BatchSource(config::batch_config(config)));
  return trained(stepper);
}

/// Of every rank.
std::vector<Trained> on_ranks(int size, const config::TrainConfig& config, int nodes = 1,
                              const std::string& kind = "threads") {
  std::vector<Trained> of_ranks(static_cast<std::size_t>(size));
  test::run_world(kind, size, [&](dist::Communicator& ranks) {
    at::set_num_threads(1);
    Stepper stepper(config, policy_of(config), data::BatchSource(config::batch_config(config)),
                    ranks, nodes);
    of_ranks[static_cast<std::size_t>(ranks.rank())] = trained(stepper);
  });
  return of_ranks;
}

void check_equal(const Trained& ranks, const Trained& one) {
  REQUIRE(ranks.rows.size() == one.rows.size());
  for (std::size_t i = 0; i < one.rows.size(); ++i) {
    const auto &a = ranks.rows[i], &b = one.rows[i];
    CHECK(a.batch_hash == b.batch_hash);
    CHECK(a.loss_hash == b.loss_hash);
    CHECK(a.ce_loss == b.ce_loss);
    CHECK(a.z_loss == b.z_loss);
    CHECK(a.ce_loss_per_label == b.ce_loss_per_label);
    CHECK(a.grad_norm == b.grad_norm);
    CHECK(a.clipping_rate == b.clipping_rate);
    CHECK(a.param_norm == b.param_norm);
    CHECK(a.masked_instances == b.masked_instances);
    CHECK(a.chain_hash == b.chain_hash);
  }
  const auto difference = first_difference(ranks.trace, one.trace);
  INFO((difference ? difference->operation + ": " + difference->reason : std::string()));
  CHECK(!difference);
  REQUIRE(ranks.hashes.size() == one.hashes.size());
  for (std::size_t i = 0; i < one.hashes.size(); ++i) {
    INFO(one.hashes[i].name);
    CHECK(ranks.hashes[i].part == one.hashes[i].part);
    CHECK(ranks.hashes[i].name == one.hashes[i].name);
    CHECK(ranks.hashes[i].sha256 == one.hashes[i].sha256);
  }
}

std::string batch_of(std::int64_t micro_batches) {
  return "global_train_batch_size=" + std::to_string(micro_batches);
}

constexpr const char* kDdp = "distributed_strategy=ddp";

}  // namespace

TEST_CASE("a step waits for a GPU three times, however many micro-batches it has", "[train][gpu]") {
  const test::TemporaryDirectory folder;
  const auto tokens = write_tokens(folder);
  const ops::emulated::Mode delayed("delayed");
  for (const std::string instances : {"8", "2", "1"}) {
    INFO(instances << " instances a micro-batch");
    const auto config = config_of(
        tokens, {"global_train_batch_size=8", "device_train_microbatch_size=" + instances});
    Stepper stepper(config, ops::emulated::policy_of(Device::kCuda),
                    data::BatchSource(config::batch_config(config)));
    stepper.init_weights();
    const int before = fake::waits();
    stepper.update(stepper.gradients());
    // For the norms of the gradients, which are the end of the backward pass; for the losses, which
    // are there by then; for the norm of the updated weights.
    CHECK(fake::waits() - before == 3);
  }
}

TEST_CASE("ranks train with the bits of one process, however many micro-batches they share",
          "[train]") {
  const test::TemporaryDirectory folder;
  const auto tokens = write_tokens(folder);
  for (const auto& [size, micro_batches] : std::vector<std::pair<int, int>>{
           {2, 1}, {2, 5}, {3, 8}, {4, 9}, {5, 4}, {6, 7}, {7, 7}, {8, 13}, {9, 27}}) {
    const auto config = config_of(tokens, {kDdp, batch_of(micro_batches)});
    INFO(size << " ranks, " << micro_batches << " micro-batches");
    const auto one = on_one_process(config);
    for (const auto& rank : on_ranks(size, config)) check_equal(rank, one);
  }
}

TEST_CASE("ranks have the bits of one process where a step's last micro-batch is smaller",
          "[train]") {
  const test::TemporaryDirectory folder;
  const auto tokens = write_tokens(folder);
  for (const auto& [size, batch] :
       std::vector<std::pair<int, int>>{{2, 4}, {2, 8}, {3, 7}, {4, 5}}) {
    const auto config =
        config_of(tokens, {kDdp, batch_of(batch), "device_train_microbatch_size=3"});
    INFO(size << " ranks, " << batch << " instances");
    const auto one = on_one_process(config);
    for (const auto& rank : on_ranks(size, config)) check_equal(rank, one);
  }
}

TEST_CASE("every strategy has the bits of one process", "[train]") {
  const test::TemporaryDirectory folder;
  const auto tokens = write_tokens(folder);
  const std::string strategy =
      GENERATE("NO_SHARD", "SHARD_GRAD_OP", "FULL_SHARD", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2");
  for (const Words& precision : {Words{"precision=fp32"}, Words{"precision=amp_bf16"},
                                 Words{"precision=amp_bf16", "fsdp.precision=null"}}) {
    for (const int micro_batches : {4, 7}) {
      Words settings = {"distributed_strategy=fsdp", "fsdp.sharding_strategy=" + strategy,
                        batch_of(micro_batches)};
      settings.insert(settings.end(), precision.begin(), precision.end());
      const auto config = config_of(tokens, settings);
      INFO(strategy << " " << precision.back() << ", " << micro_batches << " micro-batches");
      const auto one = on_one_process(config);
      for (const auto& rank : on_ranks(4, config, /*nodes=*/2)) check_equal(rank, one);
    }
  }
}

TEST_CASE("large worlds have the bits of one process", "[train]") {
  const test::TemporaryDirectory folder;
  const auto tokens = write_tokens(folder);
  for (const auto& [size, strategy] :
       std::vector<std::pair<int, std::string>>{{27, "FULL_SHARD"}, {216, "SHARD_GRAD_OP"}}) {
    const auto config = config_of(tokens, {"distributed_strategy=fsdp", "model.n_layers=1",
                                           batch_of(29), "fsdp.sharding_strategy=" + strategy});
    INFO(size << " ranks");
    const auto one = on_one_process(config);
    const auto ranks = on_ranks(size, config);
    check_equal(ranks.front(), one);
    check_equal(ranks.back(), one);
  }
}

TEST_CASE("ranks over Gloo have the bits of one process", "[train]") {
  const test::TemporaryDirectory folder;
  const auto tokens = write_tokens(folder);
  for (const char* strategy : {"NO_SHARD", "FULL_SHARD", "HYBRID_SHARD"}) {
    const auto config =
        config_of(tokens, {"distributed_strategy=fsdp", "precision=amp_bf16",
                           std::string("fsdp.sharding_strategy=") + strategy, batch_of(7)});
    INFO(strategy);
    const auto one = on_one_process(config);
    for (const auto& rank : on_ranks(4, config, /*nodes=*/2, "gloo")) check_equal(rank, one);
  }
}

TEST_CASE("neither the units, the optimizer nor clipping by averages depend on the ranks",
          "[train]") {
  const test::TemporaryDirectory folder;
  const auto tokens = write_tokens(folder);
  const Words settings =
      GENERATE(Words{"fsdp.wrapping_strategy=one_in_two", "model.weight_tying=false"},
               Words{"fsdp.wrapping_strategy=null", "optimizer.name=lionw"},
               Words{"max_grad_norm_ratio=0.5", "activation_checkpointing=whole_layer"},
               Words{"device_train_microbatch_size=2", "model.bias_for_layer_norm=true",
                     "model.layer_norm_type=default"});
  Words all = {"distributed_strategy=fsdp", batch_of(10)};
  all.insert(all.end(), settings.begin(), settings.end());
  const auto config = config_of(tokens, all);
  INFO(settings.front());
  const auto one = on_one_process(config);
  for (const auto& rank : on_ranks(3, config)) check_equal(rank, one);
}

TEST_CASE("ranks evaluate over gathered weights at the same time, with those that have no batch",
          "[train]") {
  const test::TemporaryDirectory folder;
  const auto tokens = write_tokens(folder);
  const std::string strategy = GENERATE("NO_SHARD", "SHARD_GRAD_OP", "FULL_SHARD");
  const auto config = config_of(tokens, {"distributed_strategy=fsdp", "precision=amp_bf16",
                                         batch_of(3), "fsdp.sharding_strategy=" + strategy});
  const auto source = [&] { return data::BatchSource(config::batch_config(config)); };
  const auto loss_of = [](Stepper& stepper) {
    const auto batch = stepper.batches().batch(3);
    return stepper.model().forward({batch.input_ids_BL, batch.labels_BL}).ce_sum;
  };
  Stepper one(config, policy_of(config), source());
  one.init_weights();
  const double before = loss_of(one);
  one.update(one.gradients());
  const double after = loss_of(one);
  std::vector<std::vector<double>> losses(3);
  dist::run_ranks(3, [&](dist::Communicator& ranks) {
    at::set_num_threads(1);
    Stepper stepper(config, policy_of(config), source(), ranks);
    stepper.init_weights();
    auto& mine = losses[static_cast<std::size_t>(ranks.rank())];
    const auto evaluate = [&] {
      if (ranks.rank() == 1) return stepper.model().idle_evaluation_pass();
      mine.push_back(loss_of(stepper));
    };
    evaluate();
    stepper.update(stepper.gradients());
    evaluate();
  });
  CHECK(losses[0] == std::vector<double>{before, after});
  CHECK(losses[2] == std::vector<double>{before, after});
}

TEST_CASE("whatever the strategy, ranks that share an evaluation out find the rows of one process",
          "[train]") {
  const test::TemporaryDirectory folder;
  const auto tokens = write_tokens(folder);
  const std::string strategy =
      GENERATE("SHARD_GRAD_OP", "FULL_SHARD", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2");
  const auto config = config_of(
      tokens, {"distributed_strategy=fsdp", batch_of(4), "fsdp.sharding_strategy=" + strategy});
  const auto source = [&] { return data::BatchSource(config::batch_config(config)); };
  evaluation::EvaluationPlan plan;
  plan.suites = {eval::open_perplexity_suite("texts", tokens, std::nullopt)};
  plan.max_length = 16;
  plan.limit = 10;
  plan.queue.forest_rows = 15;  // an instance
  const auto rows_of = [&](Stepper& stepper, const evaluation::EvaluationRanks& among) {
    store::RecordDatabase records(store::kInMemory, store::OpenMode::kCreate);
    store::EvaluationDb db(records);
    db.begin(evaluation::describe_evaluation(stepper.model(), Digest(), nullptr, to_json(plan)));
    evaluation::evaluate(stepper.model(), nullptr, plan, &db, {}, among);
    db.flush();
    std::vector<double> losses;
    for (const auto& row : db.documents(db.evaluation_id(), "texts")) losses.push_back(row.nll);
    return losses;
  };
  Stepper one(config, policy_of(config), source());
  one.init_weights();
  const auto expected = rows_of(one, {});
  REQUIRE(expected.size() == 10);
  std::mutex mutex;
  dist::run_ranks(4, [&](dist::Communicator& ranks) {
    at::set_num_threads(1);
    Stepper stepper(config, policy_of(config), source(), ranks, /*nodes=*/2);
    stepper.init_weights();
    const auto rows =
        rows_of(stepper, {.ranks = &ranks, .passes = evaluation::RankPasses::kInStep, .check = {}});
    const std::lock_guard lock(mutex);
    CHECK(rows == expected);
  });
}

}  // namespace olmo::train
