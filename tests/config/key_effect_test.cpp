// What the table of keys says of a key is what the key does: for every key a pair of trainings that
// differ in it alone, held to the experiment digest, to the bits of the steps and to the gate of a
// comparison.
#include <fstream>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "config/key_table.h"
#include "config/train_config.h"
#include "core/compute/libtorch.h"
#include "core/files/json.h"
#include "core/hash.h"
#include "report/gate.h"
#include "report/training/identity.h"
#include "store/runs/run_db.h"
#include "support/catch.h"
#include "support/environment.h"
#include "support/temporary_directory.h"
#include "train/session_alone.h"
#include "train/stepper.h"
#include "train/train_state.h"

namespace olmo::config {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

/// Another value for a key, and the settings that both runs of the pair need for it to matter.
struct Alternative {
  std::string setting;  ///< the value
  Words with = {};
  Words only_other = {};  ///< further settings of the other run alone
};

/// By key: a key of the table that is not here fails the test. $DIR is the test's folder.
const std::map<std::string, Alternative>& alternatives() {
  static const Words kFilter = {
      "data.instance_filter={repetition_max_period: 2, repetition_min_period: 1, "
      "repetition_max_count: 5}"};
  static const Words kLong = {
      "data.instance_filter={repetition_max_period: 2, repetition_min_period: 1, "
      "repetition_max_count: 9}"};
  static const Words kClipWarmup = {"scheduler.grad_clip_warmup_steps=2",
                                    "scheduler.grad_clip_warmup_factor=0.01"};
  static const Words kYarn = {
      "model.rope_scaling={factor: 8, original_max_position_embeddings: 4096, beta_fast: 4, "
      "beta_slow: 1}"};
  static const Words kWindow = {kYarn.front(), "model.sliding_window=32"};
  static const std::map<std::string, Alternative> kAlternatives = {
      {"model.d_model", {"32"}},
      {"model.n_heads", {"4"}},
      {"model.n_kv_heads", {"1"}},
      {"model.clip_qkv", {"0.01"}},
      {"model.n_layers", {"2"}},
      {"model.mlp_ratio", {"8"}},
      {"model.mlp_hidden_size", {"48"}},
      {"model.activation_type", {"gelu"}},
      {"model.block_type", {"llama"}},
      {"model.rope", {"false"}},
      {"model.rope_theta", {"500"}},
      {"model.rope_scaling.factor", {"2", kYarn}},
      {"model.rope_scaling.original_max_position_embeddings", {"64", kYarn}},
      {"model.rope_scaling.beta_fast", {"32", kYarn}},
      {"model.rope_scaling.beta_slow", {"0.1", kYarn}},
      {"model.rope_scaling.attention_factor", {"1.5", kYarn}},
      {"model.sliding_window", {"32", kYarn}},
      {"model.full_attention_every", {"1", kWindow}},
      {"model.attention_layer_norm", {"true"}},
      {"model.attention_layer_norm_with_affine", {"false", {"model.attention_layer_norm=true"}}},
      {"model.block_group_size", {"2", {"model.n_layers=2"}}},
      {"model.layer_norm_type", {"rms"}},
      {"model.layer_norm_with_affine", {"false"}},
      {"model.layer_norm_eps", {"1e-3"}},
      {"model.norm_after", {"true"}},
      {"model.max_sequence_length", {"8"}},
      {"model.include_bias", {"true"}},
      {"model.bias_for_layer_norm", {"true"}},
      {"model.scale_logits", {"true"}},
      {"model.vocab_size", {"62"}},
      {"model.embedding_size", {"80"}},
      {"model.weight_tying", {"false"}},
      {"model.eos_token_id", {"7", {"data.generate_doc_lengths=true"}}},
      {"model.pad_token_id", {"3"}},
      {"model.init_fn", {"mitchell"}},
      {"model.init_std", {"0.05"}},
      {"model.init_cutoff_factor", {"1"}},
      {"model.scale_emb_init", {"true", {"model.init_fn=full_megatron"}}},
      {"model.emb_init_std", {"0.1"}},
      {"optimizer.name", {"lionw"}},
      {"optimizer.learning_rate", {"2e-2"}},
      {"optimizer.weight_decay", {"0.2"}},
      {"optimizer.betas", {"[0.8, 0.9]"}},
      {"optimizer.eps", {"1e-3"}},
      {"optimizer.selective_updates",
       {"true", {"model.weight_tying=false", "optimizer.decay_embeddings=true"}}},
      {"optimizer.decay_norm_and_bias", {"true"}},
      {"optimizer.decay_embeddings", {"true"}},
      {"scheduler.name", {"linear_with_warmup"}},
      {"scheduler.units", {"tokens", {"scheduler.t_warmup=2"}}},
      {"scheduler.t_warmup", {"2"}},
      {"scheduler.t_max", {"7"}},
      {"scheduler.alpha_f", {"0.5"}},
      {"scheduler.grad_clip_warmup_steps", {"null", kClipWarmup}},
      {"scheduler.grad_clip_warmup_factor", {"0.02", kClipWarmup}},
      {"scheduler.warmup_min_lr", {"0.0", {"scheduler.t_warmup=2"}}},
      {"data.paths", {"[$DIR/copy.npy]"}},
      {"data.datasets", {"{label: [$DIR/tokens.npy]}", {}, {"data.paths=null"}}},
      {"data.memmap_dtype", {"uint32"}},
      {"data.label_mask_paths", {"[$DIR/mask.npy]"}},
      {"data.drop_last", {"true"}},
      {"data.shuffle", {"false"}},
      {"data.seed", {"5"}},
      {"data.generate_doc_lengths", {"true", {"model.eos_token_id=7"}}},
      {"data.instance_filter.repetition_max_period", {"1", kFilter}},
      {"data.instance_filter.repetition_min_period", {"2", kLong}},
      {"data.instance_filter.repetition_max_count", {"9", kFilter}},
      {"tokenizer.identifier", {"elsewhere/none"}},
      {"run_name", {"other"}},
      {"seed", {"5"}},
      {"epoch", {"1"}},
      {"dry_run", {"true"}},
      {"max_duration", {"4"}},
      {"stop_at", {"2"}},
      {"stop_after", {"2"}},
      {"global_train_batch_size", {"2"}},
      {"device_train_microbatch_size", {"2"}},
      {"precision", {"amp_bf16"}},
      {"distributed_strategy", {"ddp", {"precision=amp_bf16"}}},
      {"fsdp.sharding_strategy", {"_HYBRID_SHARD_ZERO2"}},
      {"fsdp.wrapping_strategy", {"null"}},
      {"fsdp.precision", {"null", {"precision=amp_bf16"}}},
      {"fsdp.hybrid_sharding_num_model_replicas", {"2"}},
      {"max_grad_norm", {"0.01"}},
      {"max_grad_norm_ratio", {"0.5"}},
      {"softmax_auxiliary_loss", {"true"}},
      {"auxiliary_loss_multiplier", {"1e-2", {"softmax_auxiliary_loss=true"}}},
      {"fused_loss", {"true", {"softmax_auxiliary_loss=true"}}},
      {"time_limit", {"0"}},
      {"early_stopping_factor", {"1e-9"}},
      {"save_folder", {"elsewhere"}},
      {"save_interval", {"2"}},
      {"save_interval_unsharded", {"2"}},
      {"save_interval_ephemeral", {"1"}},
      {"save_num_checkpoints_to_keep", {"1", {"save_interval=1"}}},
      {"save_num_unsharded_checkpoints_to_keep", {"0", {"save_interval_unsharded=2"}}},
      {"save_overwrite", {"true"}},
      {"save_failures_allowed", {"0"}},
      {"no_pre_train_checkpoint", {"false", {"save_interval=2"}}},
      {"load_path", {"$DIR/copy_of_step2", {"load_path=$DIR/step2"}}},
      {"try_load_latest_save", {"true"}},
      {"reset_optimizer_state", {"true", {"load_path=$DIR/step2"}}},
      {"reset_trainer_state", {"true", {"load_path=$DIR/step2"}}},
      {"restore_dataloader", {"false", {"load_path=$DIR/step2"}}},
      {"fast_forward_batches", {"1", {"load_path=$DIR/step2"}}},
      {"eval_interval", {"2"}},
      {"eval_on_load", {"true"}},
      {"eval_subset_num_batches", {"1"}},
      {"device_eval_batch_size", {"2"}},
      {"evaluators", {"[{label: ours, type: lm, data: {paths: [$DIR/tokens.npy]}}]"}},
      {"activation_checkpointing", {"whole_layer", {"model.n_layers=2"}}},
      {"load_weights", {"$DIR/copy_of_step2", {"load_weights=$DIR/step2"}}},
      {"numerics", {"fast"}},
      {"isa", {"plain"}},
      {"device", {"cuda"}},
      {"threads", {"2"}},
      {"hash_interval", {"1"}},
      {"trace_interval", {"1"}},
      {"allow_eos_mismatch", {"true"}},
  };
  return kAlternatives;
}

/// Keys that a training here cannot show: it needs another machine, or is none.
const std::set<std::string> kNotTrained = {"device", "dry_run"};

void write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

class Scene {
 public:
  Scene() {
    write_tokens(folder_ / "tokens.npy");
    write_tokens(folder_ / "copy.npy");
    write_file(folder_ / "mask.npy", std::string(kInstances * 16, '\1'));
    const auto ended = train::run_session(config({"stop_at=2"}), {folder_ / "first", {}, {}, ""});
    fs::rename(*ended.train.checkpoint, folder_ / "step2");
    fs::copy(folder_ / "step2", folder_ / "copy_of_step2", fs::copy_options::recursive);
  }

  [[nodiscard]] LoadedConfig config(Words settings) const {
    Words all = {"model.d_model=16",
                 "model.n_heads=2",
                 "model.n_layers=1",
                 "model.vocab_size=64",
                 "model.embedding_size=null",
                 "model.max_sequence_length=16",
                 "model.eos_token_id=1",
                 "model.pad_token_id=1",
                 "optimizer.name=adamw",
                 "optimizer.learning_rate=1e-2",
                 "optimizer.weight_decay=0.1",
                 "scheduler.t_warmup=0",
                 "max_duration=3",
                 "global_train_batch_size=4",
                 "device_train_microbatch_size=4",
                 "max_grad_norm=1",
                 "save_interval=null",
                 "no_pre_train_checkpoint=true",
                 "tokenizer.identifier=none",
                 "threads=1",
                 "hash_interval=0",
                 "data.paths=[$DIR/tokens.npy]"};
    all.insert(all.end(), settings.begin(), settings.end());
    for (auto& setting : all) {
      const auto at = setting.find("$DIR");
      if (at != std::string::npos) setting.replace(at, 4, folder_.path().string());
    }
    return parse_config("{}", "base.json", all);
  }

  /// A run with its record, through the whole session: for keys of the loop around the steps.
  store::RecordedRun recorded(const LoadedConfig& loaded) {
    const auto ended =
        train::run_session(loaded, {folder_ / ("run" + std::to_string(++runs_)), {}, {}, "test"});
    const auto db = store::RunDb::open(ended.database, store::OpenMode::kReadOnly);
    return store::read_run(db.records(), ended.run_id);
  }

  /// The same steps without a record on a disk, a hundred times faster: for keys of the
  /// computation.
  static store::RecordedRun computed(const TrainConfig& config) {
    Policy policy = resolve_policy("portable", "auto", 1);
    policy.mixed_precision = config.mixed_precision();
    train::Stepper stepper(config, policy, data::BatchSource(batch_config(config)));
    std::optional<train::Start> none;
    train::begin_at(stepper, none, train::StartOf::kThisRun);
    store::RecordedRun run;
    run.config = json_text(to_json(config));
    run.experiment_digest = experiment_digest(config).hex();
    const auto note_state = [&](std::int64_t step) {
      for (const auto& hash : stepper.state_hashes()) run.state_hashes[step].push_back(hash);
    };
    note_state(0);
    while (stepper.state().step < stepper.last_step()) {
      const auto row = stepper.update(stepper.gradients());
      run.steps.step.push_back(row.step);
      run.steps.tokens.push_back(row.tokens);
      run.steps.loss.push_back(row.ce_loss);
      run.steps.grad_norm.push_back(row.grad_norm);
      run.steps.batch.push_back(std::stoull(row.batch_hash.substr(0, 16), nullptr, 16));
      run.steps.chain.push_back(std::stoull(row.chain_hash.substr(0, 16), nullptr, 16));
    }
    note_state(stepper.state().step);
    for (const auto& path : config.data.files())
      run.inputs.push_back({"tokens", path, 1, sha256_file(path).hex()});
    return run;
  }

 private:
  static constexpr std::size_t kInstances = 12;

  /// Three steps of four instances see them all. Odd tokens are 0, so that the file is one of
  /// 32-bit ids, too, and has few ids, so that it is taken for either; some instances repeat one
  /// token or two.
  static void write_tokens(const fs::path& path) {
    std::string bytes;
    for (std::size_t i = 0; i < kInstances * 16; ++i) {
      const std::size_t instance = i / 16;
      const std::size_t any = (i * i * 2654435761U >> 9) % 12;
      const std::size_t id = i % 2 == 1 || instance % 4 == 0 ? 0 : instance % 4 == 1 ? 7 : any;
      bytes.push_back(static_cast<char>(id));
      bytes.push_back('\0');
    }
    write_file(path, bytes);
  }

  test::TemporaryDirectory folder_;
  test::Environment cache_{"OLMO_HARNESS_CACHE", (folder_ / "cache").string()};
  int runs_ = 0;
};

report::Gate gate_of(const store::RecordedRun& a, const store::RecordedRun& b) {
  report::Side x, y;
  x.run = a;
  y.run = b;
  return report::compare_settings(x, y, report::Kind::kTrajectory);
}

bool same_bits(const store::RecordedRun& a, const store::RecordedRun& b) {
  return report::find_identity(a, b).same_training();
}

/// What the gate says of the key itself, or of the one under which it is told
/// (report/comparability/same_model.h).
MismatchClass class_of(const report::Gate& gate, const std::string& path) {
  const std::string key = path == "model.mlp_ratio" ? "model.mlp_hidden_size" : path;
  for (const auto& mismatch : gate.mismatches)
    if (mismatch.what == key || mismatch.what.starts_with(key + ".")) return mismatch.mismatch;
  return MismatchClass::kBenign;
}

std::string text_of(const report::Gate& gate) {
  std::string text;
  for (const auto& mismatch : gate.mismatches)
    text += mismatch.what + " (" + report::to_string(mismatch.mismatch) + ") ";
  return text;
}

bool decides(const KeyRow& row) {
  const Effect effect = row.key.rule.effect;
  return effect == Effect::kIdentity || effect == Effect::kRefused || effect == Effect::kPrecision;
}

struct Pair {
  LoadedConfig one, other;
};

Pair pair_of(const Scene& scene, const KeyRow& row, const Alternative& alternative) {
  Words settings = alternative.with;
  Pair pair{scene.config(settings), {}};
  settings.insert(settings.end(), alternative.only_other.begin(), alternative.only_other.end());
  settings.push_back(row.path + "=" + alternative.setting);
  pair.other = scene.config(settings);
  return pair;
}

/// The values differ and, where one can be run only, the other keeps a run from starting.
bool check_reading(const KeyRow& row, const Pair& pair) {
  const auto [one, other] = pair;
  CHECK(to_json(one.config) != to_json(other.config));
  CHECK((experiment_digest(one.config) != experiment_digest(other.config)) == decides(row));
  if (!other.blockers.empty()) {
    REQUIRE(other.blockers.size() == 1);
    CHECK(other.blockers[0].find("`" + row.path + "` is ") != std::string::npos);
  }
  CHECK((other.blockers.empty() || row.key.words.size() == 1 ||
         row.key.rule.effect == Effect::kRefused));
  return other.blockers.empty();
}

}  // namespace

TEST_CASE("every key does to the bits, the digest and the gate what its row says", "[config]") {
  Scene scene;
  std::map<Words, store::RecordedRun> computed, recorded;  // the first runs of the pairs
  for (const auto& row : key_table()) {
    if (row.absent || row.group) continue;
    INFO(row.path);
    const auto found = alternatives().find(row.path);
    REQUIRE(found != alternatives().end());
    const Alternative& alternative = found->second;
    const Pair pair = pair_of(scene, row, alternative);
    if (!check_reading(row, pair) || kNotTrained.contains(row.path)) continue;
    const bool from_start = !pair.one.config.load_path && !pair.one.config.load_weights;
    const bool in_steps = decides(row) && from_start;
    auto& known = in_steps ? computed : recorded;
    if (!known.contains(alternative.with))
      known[alternative.with] =
          in_steps ? Scene::computed(pair.one.config) : scene.recorded(pair.one);
    const auto& one = known.at(alternative.with);
    const auto other = in_steps ? Scene::computed(pair.other.config) : scene.recorded(pair.other);
    const auto gate = gate_of(one, other);
    INFO(text_of(gate));
    const bool same = same_bits(one, other);
    if (row.path == "numerics") {  // the one key that changes roundings and no experiment
      CHECK(class_of(gate, row.path) == MismatchClass::kBenign);
      CHECK(std::abs(one.steps.loss[0] - other.steps.loss[0]) < 1e-4);
      continue;
    }
    CHECK((same || decides(row)));
    if (same) CHECK_FALSE((gate.has(MismatchClass::kFatal) || gate.has(MismatchClass::kConfound)));
    CHECK(class_of(gate, row.path) == row.key.rule.mismatch);
  }
  for (const auto& [path, unused] : alternatives()) {
    INFO(path);
    CHECK(find_key(path) != nullptr);
  }
}

TEST_CASE("a key of the effect `precision` changes no digest in fp32", "[config]") {
  const auto base = experiment_digest(parse_config("{}", "c.json", {"data.paths=[a]"}).config);
  for (const std::string setting : {"distributed_strategy=ddp", "distributed_strategy=null",
                                    "fsdp.precision=pure", "fsdp.precision=null", "fsdp=null"}) {
    INFO(setting);
    const auto loaded = parse_config("{}", "c.json", {"data.paths=[a]", setting});
    CHECK(loaded.blockers.empty());
    CHECK(experiment_digest(loaded.config) == base);
  }
}

TEST_CASE("a key without a member changes no config, or is refused", "[config]") {
  const Words common = {"data.paths=[a]", "load_path=p", "precision=amp_bf16"};
  const auto base = parse_config("{}", "c.json", common);
  for (const auto& row : key_table()) {
    if (!row.absent || row.absent->accepted == "*") continue;
    INFO(row.path);
    Words words = common;
    words.push_back(row.path + "=7");
    const auto loaded = parse_config("{}", "c.json", words);
    CHECK(to_json(loaded.config) == to_json(base.config));
    CHECK(experiment_digest(loaded.config) == experiment_digest(base.config));
    const bool refused = row.key.rule.effect == Effect::kRefused;
    CHECK(loaded.blockers.size() == (refused ? 1 : 0));
    CHECK(loaded.notes.size() == (refused ? 0 : 1));
    CHECK((refused || row.key.rule.effect == Effect::kIgnored));
  }
}

TEST_CASE("rotations in bf16 are refused where OLMo would make them, and nowhere else",
          "[config]") {
  const auto blockers = [](const Words& words) {
    return parse_config(R"({"data": {"paths": ["a"]}})", "c.json", words).blockers;
  };
  const std::string wish = "model.rope_full_precision=false";
  CHECK(blockers({wish, "precision=fp32"}).empty());
  CHECK(blockers({wish}).empty());
  CHECK(blockers({"precision=amp_bf16"}).empty());
  REQUIRE(blockers({wish, "precision=amp_bf16"}).size() == 1);
  CHECK(blockers({wish, "precision=amp_bf16"})[0].find("always computed in fp32") !=
        std::string::npos);
}

}  // namespace olmo::config
