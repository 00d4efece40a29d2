#include "config/config_errors.h"
#include "model/recomputation.h"

namespace olmo::config {
namespace {

using test::config_errors;
using test::has;
using test::says;

TEST_CASE("ranges and relations between keys are checked", "[config]") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"device_train_microbatch_size=0", "`device_train_microbatch_size` must lie in 1.."},
      {"global_train_batch_size=0", "`global_train_batch_size` must lie in 1.."},
      {"model.max_sequence_length=1", "`model.max_sequence_length` must be above 1"},
      {"model.n_heads=7", "`model.n_heads` must divide `model.d_model`"},
      {"model.eos_token_id=50304", "`model.eos_token_id` must lie in 0..50303"},
      {"model.vocab_size=100278 model.embedding_size=100352",
       "`data.memmap_dtype` is uint16, which cannot hold"},
      {"optimizer.learning_rate=0", "`optimizer.learning_rate` must be above 0"},
      {"optimizer.betas=[0.9,1.0]", "`optimizer.betas` must lie in [0, 1)"},
      {"scheduler.t_warmup=-1", "`scheduler.t_warmup` must be a whole number from 0"},
      {"scheduler.t_warmup=0.5", "`scheduler.t_warmup` must be a whole number"},
      {"scheduler.t_warmup=0 scheduler.name=inverse_sqrt_with_warmup",
       "`scheduler.t_warmup` must be at least 1, got 0: inverse_sqrt_with_warmup"},
      {"scheduler.t_warmup=0 scheduler.alpha_f=0 scheduler.t_max=1",
       "`scheduler.t_max` gives every step the learning rate 0"},
      {"scheduler.t_warmup=0 scheduler.alpha_f=0 max_duration=1",
       "`scheduler.alpha_f` gives every step the learning rate 0"},
      {"optimizer.learning_rate=1e-60",
       "`optimizer.learning_rate` must be a number that fp32 can hold"},
      {"optimizer.eps=0", "`optimizer.eps` must be above 0"},
      {"max_grad_norm_ratio=1e-60", "`max_grad_norm_ratio` must be a number that fp32 can hold"},
      {"model.layer_norm_eps=1e-60", "`model.layer_norm_eps` must be a number that fp32 can hold"},
      {"scheduler.t_max=100", "`scheduler.t_max` must be above `scheduler.t_warmup`"},
      {"scheduler.warmup_min_lr=1",
       "`scheduler.warmup_min_lr` must lie in [0, `optimizer.learning_rate`)"},
      {"max_grad_norm=0", "`max_grad_norm` must be above 0"},
      {"run_name=''", "`run_name` must be a name or null, got an empty text"},
      {"save_interval=0", "`save_interval` must lie in 1.."},
      {"save_num_checkpoints_to_keep=-2", "`save_num_checkpoints_to_keep` must lie in -1.."},
      {"save_failures_allowed=-1", "`save_failures_allowed` must lie in 0.."},
      {"isa=sse", "`isa` is `sse`, expected one of auto, plain, avx2, avx512"},
      {"device=tpu", "`device` is `tpu`, expected one of cpu, cuda, rocm"},
      {"data.paths=[a] data.datasets={b: [c]}",
       "`data.paths` and `data.datasets` exclude each other"},
      {"data.paths=[a] data.label_mask_paths=[b,c]",
       "must name one file for each of the 1 token files, got 2"},
      {"data.instance_filter={repetition_min_period: 20}",
       "`data.instance_filter.repetition_max_period` must lie in 20.."},
      {"load_path=a load_weights=b", "`load_weights` and `load_path` exclude each other"},
      {"auxiliary_loss_multiplier=null softmax_auxiliary_loss=true",
       "`auxiliary_loss_multiplier` must be a number"},
      {"max_duration=1e18 model.max_sequence_length=2048", "`max_duration` is beyond any run"},
      {"model.n_layers=4096 model.d_model=1048576 model.n_heads=8192 "
       "model.max_sequence_length=16777216",
       "is beyond any memory"},
      {"max_grad_norm=.inf",
       "`max_grad_norm` expects a finite number, which must be above 0, got `.inf`"},
      {"optimizer.weight_decay=1e400",
       "`optimizer.weight_decay` expects a finite number, which must be at least 0, got `1e400`"},
      {"optimizer.betas=[0.9,nan]", "`optimizer.betas.1` expects a finite number, got `nan`"},
      {"seed=18446744073709551616",
       "`seed` expects an integer from 0 to 9223372036854775807, got `18446744073709551616`"},
      {"save_interval=1.5", "`save_interval` expects an integer, which must lie in 1.."},
      {"global_train_batch_size=true",
       "`global_train_batch_size` expects an integer, which must lie in 1..16777216, got `true`"},
      {"model.d_model=9223372036854775808",
       "`model.d_model` expects an integer, which must lie in 1..1048576, got "
       "`9223372036854775808`"}};
  for (const auto& [settings, expected] : cases) {
    INFO(settings);
    std::vector<std::string> overrides;
    for (std::size_t begin = 0; begin < settings.size();) {
      // A space begins the next setting only before a key.
      auto end = settings.find(' ', begin);
      while (end != std::string::npos && settings.find('=', end) == std::string::npos)
        end = settings.find(' ', end + 1);
      overrides.push_back(settings.substr(begin, end - begin));
      begin = end == std::string::npos ? settings.size() : end + 1;
    }
    const auto errors = config_errors("{}", overrides);
    CHECK(errors.size() == 1);
    CHECK(has(errors, expected));
  }
}

TEST_CASE("a micro-batch is never larger than the batch of a step", "[config]") {
  TrainConfig config;
  config.global_train_batch_size = 24;
  config.device_train_microbatch_size = 8;
  CHECK(config.micro_batch() == 8);
  CHECK(config.micro_batches() == 3);
  config.device_train_microbatch_size = 7;
  CHECK(config.micro_batches() == 4);
  config.device_train_microbatch_size = 32;
  CHECK(config.micro_batch() == 24);
  CHECK(config.micro_batches() == 1);
}

TEST_CASE("what amp_bf16 rounds follows from how OLMo would wrap the parameters", "[config]") {
  const auto loaded = [](std::vector<std::string> settings) {
    settings.insert(settings.end(), {"data.paths=[a]", "precision=amp_bf16"});
    return parse_config("{}", "c.json", settings);
  };
  const auto mixed = loaded({"distributed_strategy=fsdp"});
  CHECK(mixed.config.mixed_precision() == olmo::MixedPrecision::kMixed);
  for (const std::string setting : {"distributed_strategy=ddp", "distributed_strategy=single",
                                    "distributed_strategy=null", "fsdp.precision=null"}) {
    INFO(setting);
    const auto other = loaded({setting});
    CHECK(other.blockers.empty());
    CHECK(other.config.mixed_precision() == olmo::MixedPrecision::kAutocast);
    CHECK(experiment_digest(other.config) != experiment_digest(mixed.config));
  }
  CHECK(experiment_digest(loaded({"distributed_strategy=ddp"}).config) ==
        experiment_digest(loaded({"distributed_strategy=single"}).config));
}

TEST_CASE("what of FSDP and of a model amp_bf16 cannot be is refused with a reason", "[config]") {
  const auto blocker = [](std::vector<std::string> settings) {
    settings.insert(settings.end(), {"data.paths=[a]", "precision=amp_bf16"});
    const auto blockers = parse_config("{}", "c.json", settings).blockers;
    return blockers.size() == 1 ? blockers[0] : std::to_string(blockers.size()) + " blockers";
  };
  CHECK(says(blocker({"fsdp.precision=pure"}), "gradients of the processes in bf16"));
  CHECK(says(blocker({"fsdp=null"}), "distributed_strategy=single"));
  CHECK(says(blocker({"model.scale_logits=true"}), "rounds the logits twice"));
  CHECK(says(blocker({"model.norm_after=true"}), "residual stream fp32 within the first block"));
  CHECK(blocker({"model.norm_after=true", "distributed_strategy=ddp"}) == "0 blockers");
  CHECK(blocker({"fsdp.precision=pure", "distributed_strategy=ddp"}) == "0 blockers");
  CHECK(has(config_errors("{}", {"distributed_strategy=tensor"}), "fsdp, ddp, single"));
  CHECK(has(config_errors("{}", {"fsdp.precision=half"}), "mixed, pure"));
}

TEST_CASE("how parameters are sharded is checked, and belongs to no experiment", "[config]") {
  CHECK(has(config_errors("{}", {"fsdp.sharding_strategy=ZERO"}), "FULL_SHARD, SHARD_GRAD_OP"));
  CHECK(
      has(config_errors("{}", {"fsdp.wrapping_strategy=by_layer"}), "by_block, by_block_and_size"));
  CHECK(has(config_errors("{}", {"fsdp.wrapping_strategy=by_block_group"}),
            "needs `model.block_group_size` to be 2 or more, got 1"));
  CHECK(has(config_errors("{}", {"fsdp.hybrid_sharding_num_model_replicas=0"}), "got 0"));
  CHECK(has(config_errors("{}", {"model.n_layers=6", "model.block_group_size=4"}),
            "must divide `model.n_layers`, got 4 and 6"));
  const auto base = parse_config("{}", "c.json", {"data.paths=[a]"}).config;
  const auto grouped = parse_config(
      "{}", "c.json",
      {"data.paths=[a]", "model.block_group_size=2", "fsdp.wrapping_strategy=by_block_group",
       "fsdp.sharding_strategy=HYBRID_SHARD", "fsdp.hybrid_sharding_num_model_replicas=4"});
  CHECK(grouped.notes.empty());
  CHECK(experiment_digest(grouped.config) == experiment_digest(base));
}

TEST_CASE("a YAML of OLMo's must say fsdp.precision where it matters, for its default is refused",
          "[config]") {
  const auto blockers = [](const std::string& yaml) {
    auto lines = parse_config("data: {paths: [a]}\n" + yaml, "c.yaml").blockers;
    std::erase_if(lines, [](const std::string& line) { return !says(line, "fsdp"); });
    return lines;
  };
  CHECK(blockers("precision: fp32\n").empty());
  CHECK(blockers("precision: amp_bf16\ndistributed_strategy: ddp\n").empty());
  CHECK(blockers("precision: amp_bf16\nfsdp: {precision: mixed}\n").empty());
  REQUIRE(blockers("precision: amp_bf16\n").size() == 1);
  CHECK(says(blockers("precision: amp_bf16\n")[0],
             "OLMo's default is pure, which is not supported: "
             "give fsdp.precision=mixed"));
}

TEST_CASE("activation_checkpointing is one of OLMo's words or null, in YAML as in JSON",
          "[config]") {
  const auto yaml = [](const std::string& value) {
    const std::string text = "activation_checkpointing: " + value + "\n";
    return parse_config(text, "c.yaml", {}).config.activation_checkpointing;
  };
  for (const auto word : olmo::model::kActivationCheckpointing)
    CHECK(yaml(std::string(word)) == std::string(word));
  CHECK_FALSE(yaml("null"));
  CHECK_FALSE(yaml("~"));
  CHECK(config_errors("{}", {"activation_checkpointing=all"}) ==
        std::vector<std::string>{
            "command line: `activation_checkpointing` is `all`, expected one of whole_layer, "
            "one_in_two, one_in_three, one_in_four, one_in_eight, two_in_three, three_in_four, "
            "fine_grained"});
}

}  // namespace
}  // namespace olmo::config
