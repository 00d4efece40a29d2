#include "config/train_config.h"

#include <filesystem>
#include <random>

#include <nlohmann/json.hpp>

#include "config/config_errors.h"
#include "core/error.h"
#include "support/catch.h"

using olmo::Error;
using olmo::ErrorKind;
using olmo::Json;
using namespace olmo::config;
using olmo::test::config_errors;
using olmo::test::has;
using olmo::test::says;

namespace {

const std::filesystem::path kConfigs = std::filesystem::path(OLMO_SOURCE_DIR) / "configs" / "train";
const std::filesystem::path kOfficialLike =
    std::filesystem::path(OLMO_TEST_DATA) / "train" / "official_like.yaml";

/// A config in which every key has another value than its default.
std::string everything() {
  return R"({
    "run_name": "a ${seed} \\${b}", "seed": 18446744073709551, "epoch": 1, "dry_run": true,
    "model": {"d_model": 96, "n_heads": 6, "n_kv_heads": 3, "clip_qkv": 8.1, "n_layers": 3, "mlp_ratio": 6,
      "mlp_hidden_size": 256, "rope_full_precision": false, "rope_theta": 500000.5, "attention_layer_norm": true,
      "attention_layer_norm_with_affine": false, "block_group_size": 3, "layer_norm_type": "rms", "layer_norm_with_affine": false,
      "layer_norm_eps": 1e-6, "norm_after": true, "max_sequence_length": 33, "bias_for_layer_norm": true,
      "scale_logits": true, "vocab_size": 100, "embedding_size": null, "weight_tying": false, "eos_token_id": 3,
      "pad_token_id": 4, "init_fn": "full_megatron", "init_std": 0.1, "init_cutoff_factor": 3,
      "scale_emb_init": true, "emb_init_std": 0.3},
    "optimizer": {"name": "adamw", "learning_rate": 0.30000000000000004, "weight_decay": 0.2, "betas": [0.1, 0.2],
      "eps": 1e-30, "selective_updates": true, "decay_norm_and_bias": true, "decay_embeddings": true},
    "scheduler": {"name": "linear_with_warmup", "units": "tokens", "t_warmup": 7, "t_max": 1e10, "alpha_f": 0.2,
      "grad_clip_warmup_steps": 5, "grad_clip_warmup_factor": 2.5, "warmup_min_lr": 0.0},
    "data": {"datasets": {"b": ["x.npy"], "a": ["y.npy", "${run_name}"]}, "memmap_dtype": "uint32",
      "label_mask_paths": ["1", "2", "3"], "generate_attention_mask": true, "drop_last": true, "seed": 5,
      "instance_filter": {"repetition_max_period": 14, "repetition_min_period": 2, "repetition_max_count": 31}},
    "tokenizer": {"identifier": "t.json", "truncate_direction": "left"},
    "max_duration": "2e12T", "stop_at": 3, "stop_after": 2, "global_train_batch_size": 24,
    "device_train_microbatch_size": 8, "precision": "amp_bf16", "distributed_strategy": "ddp",
    "fsdp": {"precision": null, "sharding_strategy": "HYBRID_SHARD", "wrapping_strategy": "one_in_five", "hybrid_sharding_num_model_replicas": 5}, "max_grad_norm": 0.7, "max_grad_norm_ratio": 1.1,
    "softmax_auxiliary_loss": true, "auxiliary_loss_multiplier": null, "time_limit": 10.5,
    "extra_steps_after_cancel": 0, "early_stopping_factor": 3.5, "save_folder": "s", "save_interval": null,
    "save_interval_unsharded": 4, "save_interval_ephemeral": 2, "save_num_checkpoints_to_keep": 3,
    "save_num_unsharded_checkpoints_to_keep": 2, "save_overwrite": true, "save_failures_allowed": 7, "no_pre_train_checkpoint": true,
    "load_path": "l", "try_load_latest_save": true, "reset_optimizer_state": true, "reset_trainer_state": true,
    "restore_dataloader": false, "fast_forward_batches": 9, "eval_interval": 8, "eval_on_load": true,
    "eval_subset_num_batches": 1, "device_eval_batch_size": 2, "evaluators": [{"label": "piqa", "type": "downstream"}],
    "activation_checkpointing": "one_in_four", "fused_loss": true,
    "numerics": "fast", "isa": "plain", "device": "cuda", "threads": 3, "hash_interval": 0, "trace_interval": 7, "allow_eos_mismatch": true,
    "auxiliary_loss_multiplier_": 0})";
}

std::string everything_valid() {
  auto text = everything();
  const std::string wrong = ",\n    \"auxiliary_loss_multiplier_\": 0";
  text.erase(text.find(wrong), wrong.size());
  const std::string null = "\"auxiliary_loss_multiplier\": null";
  return text.replace(text.find(null), null.size(), "\"auxiliary_loss_multiplier\": 1e-5");
}

}  // namespace

TEST_CASE("defaults are OLMo's", "[config]") {
  const auto config = parse_config("{}", "c.json").config;
  CHECK(config.seed == 6198);
  CHECK(config.optimizer.eps == 1e-5);
  CHECK(config.max_duration.value == 10000);
  CHECK(config.save_interval == 1000);
  CHECK(config.z_multiplier() == 0.0);
  const auto problems = validate(config);
  REQUIRE(problems.size() == 1);
  CHECK(olmo::sentences_of(problems) ==
        "`data.paths` names no token files; give data.paths=[FILE, ...]");
}

TEST_CASE("a resolved config resolves to itself, bit for bit", "[config]") {
  const auto config = parse_config(everything_valid(), "c.json").config;
  const Json json = to_json(config);
  const Json defaults = to_json(TrainConfig{});
  CHECK(json["run_name"] == "a 18446744073709551 \\${b}");
  CHECK(json["optimizer"]["learning_rate"] == 0.1 + 0.2);
  CHECK(json["max_duration"] == "2000000000000T");
  const Json again = to_json(parse_config(json.dump(2), "c.json").config);
  CHECK(again == json);
  CHECK(again.dump() == json.dump());
  for (const auto& [key, value] : defaults.items()) {  // so the round trip above tells of every key
    INFO(key);
    if (key != "load_weights") CHECK(json[key] != value);
  }
}

TEST_CASE("an unknown key names the nearest one, with its line", "[config]") {
  CHECK(config_errors("{\n\"optimizer\": {\n\"learnig_rate\": 1}}") ==
        std::vector<std::string>{
            "c.json:3: `optimizer.learnig_rate` is not a key; did you mean `learning_rate`?"});
  CHECK(has(config_errors("{\"learning_rate\": 1}"), "did you mean `optimizer.learning_rate`?"));
  CHECK(has(config_errors("{\"optimzer\": {}}"), "did you mean `optimizer`?"));
  CHECK(has(config_errors("{\"model\": {\"flash_atention\": true}}"),
            "did you mean `flash_attention`?"));
  CHECK(has(config_errors("{\"wandb\": {\"projct\": 1}}"),
            "`wandb.projct` is not a key; did you mean `project`?"));
  CHECK(config_errors("{\"qqqqqqqqqqqq\": 1}") ==
        std::vector<std::string>{"c.json:1: `qqqqqqqqqqqq` is not a key"});
  CHECK(config_errors("{}", {"--model.n_headz=3"}) ==
        std::vector<std::string>{
            "command line: `model.n_headz` is not a key; did you mean `n_heads`?"});
}

TEST_CASE("the config of an experiment of OLMo-core is told as that", "[config]") {
  const auto errors = config_errors(R"({"model": {"block": {}}, "train_module": {},
                                        "data_loader": {}, "dataset": {}})");
  REQUIRE(errors.size() == 1);
  CHECK(has(errors, "c.json: is the config of an experiment of OLMo-core"));
}

TEST_CASE("all errors of a config are reported at once", "[config]") {
  const auto errors = config_errors(R"({
    "model": {"n_heads": "many", "n_layers": 0, "d_modle": 3},
    "optimizer": {"betas": [0.9], "name": "sgd"},
    "scheduler": 5,
    "seed": -1,
    "max_duration": "2 weeks",
    "save_folder": "${nowhere}"
  })",
                                    {"threads=a", "broken"});
  REQUIRE(errors.size() == 11);
  CHECK(errors[0].rfind("c.json:2: ", 0) == 0);  // by line, the command line last
  CHECK(errors[8].rfind("c.json:7: ", 0) == 0);
  CHECK(has(errors,
            "c.json:2: `model.n_heads` expects an integer, which must lie in 1..1048576, "
            "got the text \"many\""));
  CHECK(has(errors, "c.json:2: `model.n_layers` must lie in 1..4096, got 0"));
  CHECK(has(errors, "c.json:2: `model.d_modle` is not a key; did you mean `d_model`?"));
  CHECK(has(errors, "c.json:3: `optimizer.betas` expects a list of two numbers, got a list of 1"));
  CHECK(has(errors, "c.json:3: `optimizer.name` is `sgd`, expected one of adamw, lionw"));
  CHECK(has(errors, "c.json:4: `scheduler` expects a map of keys, got `5`"));
  CHECK(has(errors, "c.json:5: `seed` expects an integer from 0 to 9223372036854775807, got `-1`"));
  CHECK(
      has(errors, "c.json:6: `max_duration` expects steps (1000), tokens (2e12T) or epochs (2ep)"));
  CHECK(has(errors, "c.json:7: `save_folder` refers to `${nowhere}`, which is not set"));
  CHECK(has(errors,
            "command line: `threads` expects an integer, which must lie in 0..4096, got `a`"));
  CHECK(has(config_errors("{\"precision\": \"fp23\"}"), "expects one of fp32, amp_bf16"));
  CHECK(has(errors, "command line: `broken` is not key.path=value"));
}

TEST_CASE("an error does not bring others that only follow from it", "[config]") {
  CHECK(config_errors(R"({"model": {"n_heads": "x", "d_model": 100}})").size() == 1);
  CHECK(config_errors(R"({"model": {"n_heds": 10, "d_model": 100}})").size() == 1);
}

TEST_CASE("overrides win over the file and take lists", "[config]") {
  const auto config =
      parse_config(R"({"model": {"d_model": 64}})", "c.json",
                   {"model.d_model=128", "model.n_heads=4", "data.paths=[a.npy, b.npy]",
                    "--optimizer.betas=[0.8, 0.9]", "max_duration=2ep", "save_interval=null"})
          .config;
  CHECK(config.model.d_model == 128);
  CHECK(config.data.paths == std::vector<std::string>{"a.npy", "b.npy"});
  CHECK(config.optimizer.betas[0] == 0.8);
  CHECK(config.max_duration ==
        olmo::optim::Duration{.value = 2, .unit = olmo::optim::Duration::Unit::kEpochs});
  CHECK_FALSE(config.save_interval);
}

TEST_CASE("text is no number in JSON, but is one in YAML", "[config]") {
  CHECK(config_errors(R"({"seed": "5"})").size() == 1);
  CHECK(parse_config("seed: \"5\"\nmodel: {}\n", "c.yaml").config.seed == 5);
  CHECK(parse_config(R"({"seed": "${threads}", "threads": 5})", "c.json").config.seed == 5);
}

TEST_CASE("keys of OLMo without effect are accepted and listed", "[config]") {
  const auto loaded = parse_config(
      "{\"wandb\": {\"project\": \"x\"},\n\"compile\": null,\n\"optimizer\": "
      "{\"metrics_log_interval\": 5}}",
      "c.json", {"data.paths=[a]"});
  REQUIRE(loaded.notes.size() == 2);
  CHECK(loaded.notes[0].rfind("c.json:1: `wandb` is not honoured: ", 0) == 0);
  CHECK(loaded.notes[1].rfind("c.json:3: `optimizer.metrics_log_interval` is not honoured: ", 0) ==
        0);
  CHECK(loaded.blockers.empty());
}

TEST_CASE("a weight of the z-loss that OLMo's trainer would not take is noted", "[config]") {
  const auto notes = [](const std::string& keys) {
    return parse_config("{\"seed\": 1,\n" + keys + "}", "c.json", {"data.paths=[a]"}).notes;
  };
  const auto noted = notes(R"("softmax_auxiliary_loss": true, "auxiliary_loss_multiplier": 1e-5)");
  REQUIRE(noted.size() == 1);
  CHECK(noted[0] ==
        "c.json:2: `auxiliary_loss_multiplier` is 1e-05, and is taken; OLMo's own trainer takes "
        "1e-4, whatever is set: give auxiliary_loss_multiplier=1e-4 to train as it does");
  CHECK(notes(R"("softmax_auxiliary_loss": true, "auxiliary_loss_multiplier": 0.0001)").empty());
  CHECK(notes(R"("auxiliary_loss_multiplier": 1e-5)").empty());
}

TEST_CASE("OLMo's fused loss without the z-loss that it adds stops a run", "[config]") {
  const auto blockers = [](const std::vector<std::string>& keys) {
    return parse_config(R"({"data": {"paths": ["a"]}})", "c.json", keys).blockers;
  };
  const auto found = blockers({"fused_loss=true"});
  REQUIRE(found.size() == 1);
  CHECK(has(found,
            "command line: `fused_loss` is true without `softmax_auxiliary_loss`: there OLMo "
            "trains with a z-loss all the same. Give softmax_auxiliary_loss=true to train "
            "so, or fused_loss=false to train without"));
  CHECK(blockers({"fused_loss=true", "softmax_auxiliary_loss=true"}).empty());
  for (const char* off : {"fused_loss=false", "fused_loss=null"}) CHECK(blockers({off}).empty());
}

TEST_CASE("a value of an evaluator that cannot be used is named with its key", "[config]") {
  const auto with = [](const std::string& keys) {
    const auto errors = config_errors(R"({"evaluators": [
      {"data": {"paths": ["a"]}, )" + keys +
                                      "}]}");
    return errors.size() == 1 ? errors[0] : std::to_string(errors.size()) + " errors";
  };
  CHECK(with(R"("type": "lm")") == "c.json:2: `evaluators.0` expects a map with the key `label`");
  const auto labelled = [&](const std::string& keys) { return with(R"("label": "x", )" + keys); };
  const std::string at = "c.json:2: `evaluators.0.";
  CHECK(with(R"("label": "")") == at + "label` must be a name, got an empty text");
  CHECK(labelled(R"("type": ["lm"])") == at + "type` expects text, got a list of 1");
  CHECK(labelled(R"("type": "lmm")") == at + "type` is `lmm`, expected one of downstream, lm");
  CHECK(labelled(R"("subset_num_batches": 1.5)") ==
        at + "subset_num_batches` expects an integer, which must lie in -1..1099511627776, got "
             "`1.5`");
  CHECK(labelled(R"("device_eval_batch_size": -1)") ==
        at + "device_eval_batch_size` must lie in 0..16777216, got -1");
  CHECK(labelled(R"("device_eval_batch": 1)") ==
        at + "device_eval_batch` is not a key; did you mean `device_eval_batch_size`?");
}

TEST_CASE("an evaluator that this machine cannot resolve stops a run, and is not read further",
          "[config]") {
  const auto loaded = parse_config(
      R"({"data": {"paths": ["a"]},
"evaluators": [{"label": "x", "data": {"paths": ["${oc.env:NO_SUCH_PLACE}"]}}]})",
      "c.json");
  CHECK(has(loaded.blockers, "c.json:2: `evaluators.0.data.paths.0` cannot be resolved here"));
  CHECK(evaluators_of(loaded.config).empty());
}

TEST_CASE("numbers of an evaluator may be in quotes, and come from the environment", "[config]") {
  for (const auto* number : {"5", "${oc.env:OLMO_TEST_UNSET,5}"}) {
    INFO(number);
    const auto config =
        parse_config(std::string("evaluators: [{label: x, type: lm, data: {paths: [a]}, "
                                 "subset_num_batches: \"") +
                         number + "\"}]\n",
                     "c.yaml")
            .config;
    const auto evaluators = evaluators_of(config);
    REQUIRE(evaluators.size() == 1);
    CHECK(evaluators[0].subset_num_batches == 5);
  }
}

TEST_CASE("evaluators of one name stop a run, as their scores could not be told apart",
          "[config]") {
  const auto blocker_of = [](const std::string& first, const std::string& second) -> std::string {
    const auto blockers = parse_config(R"({"data": {"paths": ["a"]}, "evaluators": [{)" + first +
                                           "},\n{" + second + "}]}",
                                       "c.json")
                              .blockers;
    return blockers.empty() ? "" : blockers[0];
  };
  const std::string x = R"("label": "x", "data": {"paths": ["a"]})";
  CHECK(blocker_of(x, R"("label": "x", "type": "downstream")") ==
        "c.json:2: `evaluators.1.label` is that of an evaluator before it, and scores are recorded "
        "by label: give another than `x`");
  CHECK_THAT(blocker_of(x, R"("label": "y", "data": {"datasets": {"x": ["b"]}})"),
             Catch::StartsWith("c.json:2: `evaluators.1.data.datasets.x` names data as"));
  CHECK(blocker_of(x, R"("label": "y", "data": {"datasets": {"z": ["a"]}})").empty());
}

TEST_CASE("the data of an evaluator are read as those of a training", "[config]") {
  const auto with = [](const std::string& data) {
    const auto errors = config_errors(R"({"evaluators": [{"label": "x", "data": )" + data + "}]}");
    return errors.size() == 1 ? errors[0] : std::to_string(errors.size()) + " errors";
  };
  const std::string at = "c.json:1: `evaluators.0.data";
  for (const char* value : {"[]", "5", R"("a.npy")", "null"})
    CHECK_THAT(with(value), Catch::StartsWith(at + "` expects a map of keys, got "));
  CHECK(with(R"({"paths": ["a"], "memmap_dtyp": "uint32"})") ==
        at + ".memmap_dtyp` is not a key; did you mean `memmap_dtype`?");
  CHECK(with(R"({"paths": ["a"], "memmap_dtype": "int16"})") ==
        at + ".memmap_dtype` is `int16`, expected one of uint16, uint32");
  CHECK(with(R"({"paths": "a"})") == at + ".paths` expects a list of texts, got the text \"a\"");
  CHECK(with(R"({"datasets": {"a": "b"}})") ==
        at + ".datasets.a` expects a list of texts, got the text \"b\"");
  CHECK(with(R"({"paths": ["a"], "seed": -1})").find(at + ".seed` expects an integer") == 0);
  for (const char* value : {"{}", R"({"datasets": {"a": []}})"})
    CHECK_THAT(with(value),
               Catch::StartsWith(at + "` names no token files in `paths` or `datasets`"));
}

TEST_CASE("what OLMo would do with an evaluator's data and we do not stops a run", "[config]") {
  const auto blockers = [](const std::string& keys) {
    return parse_config(R"({"data": {"paths": ["a"], "memmap_dtype": "uint32"},
      "model": {"vocab_size": 70000, "embedding_size": 70016},
      "evaluators": [{"label": "x", "data": {)" +
                            keys + "}}]}",
                        "c.json")
        .blockers;
  };
  const std::string wide = R"("memmap_dtype": "uint32", "paths": ["a"])";
  CHECK(blockers(wide + R"(, "num_workers": 4, "drop_last": true, "seed": 5)").empty());
  const std::vector<std::pair<std::string, std::string>> cases = {
      {wide + R"(, "label_mask_paths": ["m"])", "give evaluators.0.data.label_mask_paths=null"},
      {wide + R"(, "instance_filter": {})", "give evaluators.0.data.instance_filter=null"},
      {wide + R"(, "shuffle": false)", "give evaluators.0.data.shuffle=true"},
      {wide + R"(, "generate_doc_lengths": true)",
       "give evaluators.0.data.generate_doc_lengths=false"},
      {wide + R"(, "datasets": {"b": ["c"]})", "exclude each other"},
      {R"("paths": ["a"])", "`evaluators.0.data.memmap_dtype` is uint16, which cannot hold"}};
  for (const auto& [keys, expected] : cases) {
    INFO(keys);
    const auto found = blockers(keys);
    CHECK(found.size() == 1);
    CHECK(has(found, expected));
  }
}

TEST_CASE("evaluators have OLMo's defaults, not those of the run's own data", "[config]") {
  const auto config =
      parse_config(R"({"data": {"paths": ["a"], "memmap_dtype": "uint32", "seed": 5}, "evaluators":
        [{"label": "x", "data": {"paths": ["b"]}}, {"label": "piqa", "type": "downstream"}]})",
                   "c.json")
          .config;
  const auto evaluators = evaluators_of(config);
  REQUIRE(evaluators.size() == 2);
  CHECK(evaluators[0].type == "lm");
  CHECK(evaluators[0].data.memmap_dtype == "uint16");
  CHECK_FALSE(evaluators[0].data.seed);
  CHECK_FALSE(evaluators[0].subset_num_batches);
  CHECK(evaluators[1].type == "downstream");
}

TEST_CASE("keys of OLMo that would change the result stop a run", "[config]") {
  const auto blocker = [](const std::string& setting) {
    const auto blockers = parse_config("{}", "c.json", {"data.paths=[a]", setting}).blockers;
    INFO(setting);
    REQUIRE(blockers.size() == 1);
    CHECK(blockers[0].rfind(
              std::string("command line: `") + setting.substr(0, setting.find('=')) + "` ", 0) ==
          0);
    return blockers[0];
  };
  CHECK(blocker("precision=amp_fp16").find("OLMo does not scale its loss") != std::string::npos);
  CHECK(blocker("precision=pure_bf16").find("give precision=amp_bf16") != std::string::npos);
  CHECK(blocker("model.attention_dropout=0.1").find("expected 0") != std::string::npos);
  CHECK(blocker("model.alibi=true").find("ALiBi") != std::string::npos);
  CHECK(blocker("model.include_bias=true").find("expected false") != std::string::npos);
  CHECK(blocker("model.rope=false").find("expected true") != std::string::npos);
  CHECK(blocker("model.block_type=llama").find("expected `sequential`") != std::string::npos);
  CHECK(blocker("data.custom_dataset={name: x}").find("token files") != std::string::npos);
  CHECK(blocker("save_folder=gs://bucket/x").find("give a local path") != std::string::npos);
  CHECK(blocker("save_folder=${oc.env:OLMO_TEST_UNSET}").find("OLMO_TEST_UNSET") !=
        std::string::npos);
  CHECK_THROWS_AS(require_no_blockers(parse_config("{}", "c.json", {"precision=amp_fp16"})), Error);
  CHECK(parse_config("{}", "c.json", {"data.paths=[a]", "model.attention_dropout=0.0"})
            .blockers.empty());
}

TEST_CASE("a sharding strategy may have the name of its class, as W&B keeps it", "[config]") {
  const auto config =
      parse_config("{}", "c.json", {"fsdp.sharding_strategy=ShardingStrategy._HYBRID_SHARD_ZERO2"})
          .config;
  REQUIRE(config.fsdp);
  CHECK(config.fsdp->sharding_strategy == "_HYBRID_SHARD_ZERO2");
}

TEST_CASE("W&B's group is null in a text unless it is set", "[config]") {
  const std::string text =
      R"({"wandb": {"name": "w"}, "run_name": "${wandb.group}/${wandb.name}"})";
  CHECK(parse_config(text, "c.json").config.run_name == "None/w");
  CHECK(parse_config(text, "c.json", {"wandb.group=g"}).config.run_name == "g/w");
}

TEST_CASE("a name that looks like a number is the same wherever it is put", "[config]") {
  const auto config =
      parse_config("run_name: 2024_06_01\nsave_folder: runs/${run_name}\n", "c.yaml").config;
  CHECK(config.run_name == "2024_06_01");
  CHECK(config.save_folder == "runs/2024_06_01");
}

TEST_CASE("old keys of OLMo are honoured", "[config]") {
  const auto load = [](const std::vector<std::string>& overrides) {
    return parse_config("{}", "c.json", overrides).config;
  };
  CHECK(load({"model.multi_query_attention=true"}).model.n_kv_heads == 1);
  CHECK_FALSE(load({"model.multi_query_attention=false"}).model.n_kv_heads);
  CHECK(has(config_errors("{}", {"model.multi_query_attention=true", "model.n_kv_heads=2"}),
            "contradicts `model.n_kv_heads`"));
  const auto decay = load({"optimizer.no_decay_norm_and_bias=false"}).optimizer;
  CHECK(decay.decay_norm_and_bias);
  CHECK(decay.decay_embeddings);
  CHECK(load({"optimizer.name=decoupled_lionw"}).optimizer.name == "lionw");
  CHECK(load({"model.layer_norm_type=amd_compatible"}).model.layer_norm_type == "default");
  CHECK(load({"activation_checkpointing=true"}).activation_checkpointing == "whole_layer");
  CHECK_FALSE(load({"activation_checkpointing=false"}).activation_checkpointing);
}

TEST_CASE("an OLMo YAML that leaves out what OLMo turns on by default is stopped", "[config]") {
  const auto loaded = parse_config("model:\n  rope: true\ndata: {paths: [a]}\n", "c.yaml");
  REQUIRE(loaded.blockers.size() == 4);
  CHECK(has(loaded.blockers,
            "c.yaml: `model.include_bias` is not set; OLMo's default is true, which is not "
            "supported: give model.include_bias=false"));
}

TEST_CASE("a digest that an older version recorded is that of the same config today", "[config]") {
  // Of the version before OLMo 3's keys.
  CHECK(experiment_digest(load_config(kConfigs / "tiny.json", {"max_duration=2"}).config).hex() ==
        "0918ce9de5087df3b68f641a9708c625bd51f62caf3aa47d3697e6e8a1f58095");
}

TEST_CASE("the experiment digest leaves out where and how, and keeps what", "[config]") {
  const auto digest = [](const std::vector<std::string>& overrides) {
    return experiment_digest(load_config(kConfigs / "tiny.json", overrides).config).hex();
  };
  const auto base = digest({});
  for (const auto* same :
       {"run_name=other", "threads=1", "isa=plain", "device=rocm", "numerics=fast",
        "data.paths=[x]", "save_folder=y", "save_interval=3", "stop_at=5", "hash_interval=1",
        "trace_interval=3", "save_failures_allowed=0", "dry_run=true", "load_weights=w"}) {
    INFO(same);
    CHECK(digest({same}) == base);
  }
  for (const auto* other : {"seed=1", "model.n_layers=3", "optimizer.eps=1e-9",
                            "global_train_batch_size=16", "device_train_microbatch_size=2",
                            "max_duration=21", "data.seed=2", "data.drop_last=false"}) {
    INFO(other);
    CHECK(digest({other}) != base);
  }
}

TEST_CASE("every shipped config is complete but for its data", "[config]") {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kConfigs)) {
    INFO(entry.path());
    const auto loaded = load_config(entry.path(), {"data.paths=[a.npy]"});
    CHECK(loaded.notes.empty());
    CHECK(loaded.blockers.empty());
    CHECK(loaded.config.save_folder == std::string("runs/") + entry.path().stem().string());
    CHECK(to_json(parse_config(to_json(loaded.config).dump(), "again.json").config) ==
          to_json(loaded.config));
    ++count;
  }
  CHECK(count >= 7);
}

TEST_CASE("a damaged config gives an error or a config, never a crash", "[config]") {
  std::mt19937 random(1);  // NOLINT: any seed will do
  for (const auto& file : {kConfigs / "olmo-7b.json", kOfficialLike}) {
    const auto whole = olmo::read_file(file);
    const auto name = std::string("x") + file.extension().string();
    int refused = 0;
    const auto attempt = [&](const std::string& text) {
      try {
        parse_config(text, name);
      } catch (const Error& error) {
        ++refused;
        CHECK(error.kind() == ErrorKind::kUsage);
      }
    };
    for (int i = 0; i < 150; ++i) attempt(whole.substr(0, random() % whole.size()));
    for (int i = 0; i < 150; ++i) {
      auto text = whole;
      for (int k = 0; k < 3; ++k)
        text[random() % text.size()] =
            static_cast<char>("{}[]:,&*!|>'\"%@`\n\t #-0\x80"[random() % 23]);
      attempt(text);
    }
    CHECK(refused > 100);
  }
}

TEST_CASE("a config that is missing, a folder or far too large is refused", "[config]") {
  CHECK_THROWS_AS(load_config("/no/such/file.json"), Error);
  CHECK_THROWS_AS(load_config(kConfigs), Error);
  CHECK_THROWS_AS(parse_config(std::string((std::size_t{16} << 20) + 1, ' '), "c.json"), Error);
}
