// Training against OLMo's own trainer, from the same weights: small trajectories that are committed
// (tests/goldens/make_trajectory.py), and the larger ones of OLMO_GOLDEN_DIR.
//
// Tolerances are ten times the distance of the reference's fp32 run from its run in float64, which
// each file holds, and no less than the rounding of the numbers that are compared.
#include <cmath>
#include <fstream>

#include <nlohmann/json.hpp>

#include "data/batch.h"
#include "store/checkpoint/checkpoint.h"
#include "store/runs/run_db.h"
#include "support/catch.h"
#include "support/golden_tensors.h"
#include "support/temporary_directory.h"
#include "train/reference_tokens.h"
#include "train/session_alone.h"

namespace olmo::train {
namespace {

namespace fs = std::filesystem;

struct Trajectory {
  config::LoadedConfig config;
  Json steps;
  NamedTensors final;
  double loss_tolerance = 0, norm_tolerance = 0, weight_tolerance = 0;
  double weight_rms_tolerance = INFINITY;  ///< of all weights together
};

double ten_times(const Json& divergence, const char* key, double least) {
  return std::max(10 * divergence.at(key).get<double>(), least);
}

void set_tolerances(Trajectory& trajectory, const Json& divergence) {
  trajectory.loss_tolerance = ten_times(divergence, "max_abs_ce_loss", 5e-6);
  trajectory.norm_tolerance = ten_times(divergence, "max_rel_total_grad_norm", 5e-6);
  trajectory.weight_tolerance = ten_times(divergence, "max_abs_final_weight", 1e-5);
}

/// The reference's value, under the name that either kind of file gives it.
const Json& of(const Json& step, const char* name, const char* other) {
  return step.contains(name) ? step.at(name) : step.at(other);
}

void check_batch(const config::TrainConfig& config, data::BatchSource& source, const Json& step,
                 const std::string& recorded_hash) {
  const auto batch = source.batch(step.at("step").get<std::uint64_t>());
  CHECK(batch.indices == step.at("index").get<std::vector<std::uint32_t>>());
  CHECK(batch.epoch == step.at("epoch").get<std::uint64_t>());
  CHECK(batch.digest.hex() == recorded_hash);
  CHECK(batch.indices.size() == static_cast<std::size_t>(config.global_train_batch_size));
}

/// One recorded step: loss, z-loss, norms, learning rate, clip, data.
void check_step(const Trajectory& trajectory, const Json& row, const Json& step,
                data::BatchSource& source) {
  INFO("step " << step.at("step"));
  const auto number = [&](const char* key) { return row.at(key).get<double>(); };
  const auto close = [](double a, const Json& b, double tolerance) {
    return std::abs(a - b.get<double>()) <= tolerance;
  };
  CHECK(close(number("ce_loss"), step.at("ce_loss"), trajectory.loss_tolerance));
  if (!step.at("z_loss").is_null()) CHECK(close(number("z_loss"), step.at("z_loss"), 1e-7));
  const Json& grad_norm = of(step, "total_grad_norm", "total_grad_norm_before_clip");
  CHECK(close(number("grad_norm") / grad_norm.get<double>(), 1.0, trajectory.norm_tolerance));
  const Json& param_norm = of(step, "param_norm", "param_norm_after_step");
  CHECK(close(number("param_norm") / param_norm.get<double>(), 1.0, 1e-6));
  CHECK(close(number("lr"), step.at("lr"), 1e-15 * step.at("lr").get<double>()));
  const Json& limit = of(step, "max_grad_norm", "max_grad_norm_used_in_this_step");
  CHECK(limit.is_null() == row.at("max_grad_norm").is_null());
  if (!limit.is_null()) CHECK(number("max_grad_norm") == limit.get<double>());
  CHECK(row.at("tokens") == of(step, "tokens", "global_train_tokens_seen"));
  check_batch(trajectory.config.config, source, step, row.at("batch_hash").get<std::string>());
}

Json rows_of(const fs::path& database) {
  const auto db = store::RunDb::open(database, store::OpenMode::kReadOnly);
  Json rows = Json::array();
  db.query("SELECT * FROM surviving_steps ORDER BY step", {},
           [&](const auto& names, const auto& v) {
             Json row;
             for (std::size_t i = 0; i < names.size(); ++i) {
               if (const auto* integer = std::get_if<std::int64_t>(&v[i]))
                 row[names[i]] = *integer;
               else if (const auto* real = std::get_if<double>(&v[i]))
                 row[names[i]] = *real;
               else if (const auto* text = std::get_if<std::string>(&v[i]))
                 row[names[i]] = *text;
               else
                 row[names[i]] = nullptr;
             }
             rows.push_back(row);
           });
  return rows;
}

/// The largest difference and the root of the mean square of all, of a series or a set of tensors.
struct Spread {
  double max = 0, squares = 0;
  std::size_t count = 0;

  void add(double difference) {
    max = std::max(max, std::abs(difference));
    squares += difference * difference;
    ++count;
  }
  [[nodiscard]] double rms() const {
    return count == 0 ? 0 : std::sqrt(squares / static_cast<double>(count));
  }
};

Spread spread_of(const NamedTensors& found, const NamedTensors& expected) {
  Spread spread;
  REQUIRE(found.size() == expected.size());
  for (const auto& weight : found) {
    const auto other = std::find_if(expected.begin(), expected.end(),
                                    [&](const auto& each) { return each.name == weight.name; });
    REQUIRE(other != expected.end());
    const auto a = host_span<float>(weight.tensor), b = host_span<float>(other->tensor);
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) spread.add(double{a[i]} - double{b[i]});
  }
  return spread;
}

void check_trajectory(const Trajectory& trajectory, const fs::path& run_dir) {
  const config::TrainConfig& config = trajectory.config.config;
  const auto result = run_session(trajectory.config, {run_dir, {}, {}, "test"});
  const Json rows = rows_of(result.database);
  REQUIRE(rows.size() == trajectory.steps.size());
  data::BatchSource source(config::batch_config(config));
  for (std::size_t i = 0; i < rows.size(); ++i)
    check_step(trajectory, rows[i], trajectory.steps[i], source);
  const auto weights = store::read_checkpoint(*result.train.checkpoint, true).model;
  REQUIRE(weights.size() == trajectory.final.size());
  for (const auto& weight : weights) {
    INFO(weight.name);
    const auto expected =
        std::find_if(trajectory.final.begin(), trajectory.final.end(),
                     [&](const auto& other) { return other.name == weight.name; });
    REQUIRE(expected != trajectory.final.end());
    CHECK(test::max_abs_difference(weight.tensor, expected->tensor) <= trajectory.weight_tolerance);
  }
  CHECK(spread_of(weights, trajectory.final).rms() <= trajectory.weight_rms_tolerance);
}

/// OLMo's own config keys, without those that are empty or that only OLMo's machinery has.
Json without_nulls(const Json& json) {
  Json kept = Json::object();
  for (const auto& [key, value] : json.items()) {
    if (!value.is_null() && key != "init_device" && key != "precision") kept[key] = value;
  }
  return kept;
}

Trajectory committed(const std::string& name, const fs::path& folder) {
  const fs::path data = OLMO_TEST_DATA "/train";
  const auto golden = test::read_golden_tensors(data / ("trajectory_" + name + ".safetensors"));
  const Json description = Json::parse(golden.metadata.at("description"));
  write_reference_tokens(folder / "tokens.npy");
  Json config = without_nulls(description.at("settings"));
  config["data"] = {{"paths", {(folder / "tokens.npy").string()}},
                    {"drop_last", true},
                    {"seed", config.at("data_seed")},
                    {"generate_doc_lengths", config.value("generate_doc_lengths", false)}};
  for (const char* key : {"data_seed", "generate_doc_lengths", "eos_token_id"}) config.erase(key);
  config["model"] = description.at("model");
  config["max_duration"] = description.at("max_duration");
  config["tokenizer"] = {{"identifier", "none"}};
  config["load_weights"] = (data / "trajectory_init.safetensors").string();
  Trajectory trajectory;
  trajectory.config = config::parse_config(config.dump(), name + ".json");
  trajectory.steps = description.at("steps");
  trajectory.final = golden.tensors;
  set_tolerances(trajectory, description.at("fp64_divergence"));
  return trajectory;
}

Json golden_config(const fs::path& golden, const std::string& name) {
  const Json run = read_json_file(golden / "train" / name / "trajectory.json");
  const char* tokens =
      run.at("instance_filter").is_null() ? "tokens_small.npy" : "tokens_filter.npy";
  Json data = {{"paths", {(golden / "train" / tokens).string()}},
               {"drop_last", run.at("drop_last")},
               {"seed", run.at("data_seed")},
               {"instance_filter", run.at("instance_filter")}};
  if (!run.at("shuffle").get<bool>()) data["shuffle"] = false;
  Json config = {{"model", without_nulls(run.at("model_config"))},
                 {"optimizer", without_nulls(run.at("optimizer"))},
                 {"scheduler", without_nulls(run.at("scheduler"))},
                 {"data", without_nulls(data)},
                 {"tokenizer", {{"identifier", "none"}}},
                 {"global_train_batch_size", run.at("global_batch")},
                 {"device_train_microbatch_size", run.at("microbatch")},
                 {"load_weights", (golden / "train" / name / "init.safetensors").string()}};
  for (const char* key :
       {"max_grad_norm", "max_grad_norm_ratio", "softmax_auxiliary_loss", "max_duration"})
    if (!run.at(key).is_null()) config[key] = run.at(key);
  return config;
}

/// At step 13 of this trajectory a query of block 0 lies 8e-7 below clip_qkv, nearer than fp32
/// rounds there. Above the limit its gradient is zero, and the weights of its token, which is seen
/// once, end 3.2e-4 from where they end below it. The reference in float64 stays below; 4 of its 20
/// fp32 runs from initial weights that differ by half an ulp go above
/// (tests/goldens/trajectory_spread.py), and so does its fp32 run on another processor than the
/// golden's, and this program. So twice the largest distances of those runs are allowed: what else
/// could be wrong shows in all weights together.
void allow_the_other_side(Trajectory& trajectory) {
  trajectory.weight_tolerance = 2 * 3.24e-4;
  trajectory.weight_rms_tolerance = 2 * 2.13e-6;
}

Trajectory from_golden_dir(const fs::path& golden, const std::string& name) {
  const Json run = read_json_file(golden / "train" / name / "trajectory.json");
  Json config = golden_config(golden, name);
  config["stop_at"] = run.at("steps").size();
  Trajectory trajectory;
  trajectory.config = config::parse_config(config.dump(), name + ".json");
  trajectory.steps = run.at("steps");
  trajectory.final =
      test::read_golden_tensors(golden / "train" / name / "final.safetensors").tensors;
  set_tolerances(trajectory, run.at("fp64_divergence"));
  if (name == "olmo7b0724_like") allow_the_other_side(trajectory);
  return trajectory;
}

/// A trajectory of golden/bf16: with the same roundings it stays as near to the reference as the
/// reference with other orders of its fp32 sums, twice that at most.
void check_bf16_trajectory(const fs::path& golden, const std::string& name,
                           const std::string& variant, const fs::path& folder) {
  const fs::path files = golden / "bf16/train" / name;
  const Json reference = read_json_file(files / "trajectory.json").at(variant);
  const Json& same = reference.at("tolerance_same");
  Json settings = golden_config(golden, name);
  settings["precision"] = "amp_bf16";
  settings["distributed_strategy"] = variant == "mixed" ? "fsdp" : "ddp";
  settings["max_duration"] = settings["stop_at"] = reference.at("max_steps");
  settings["save_interval"] = 49;
  settings["save_interval_unsharded"] = 1;
  const auto config = config::parse_config(settings.dump(), name + ".json");
  const auto result = run_session(config, {folder, {}, {}, "test"});
  const Json rows = rows_of(result.database);
  REQUIRE(rows.size() == reference.at("steps").size());
  Spread ce, z, norm;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Json& step = reference.at("steps")[i];
    const auto number = [&](const char* key) { return rows[i].at(key).get<double>(); };
    ce.add(number("ce_loss") - step.at("ce_loss").get<double>());
    if (!step.at("z_loss").is_null()) z.add(number("z_loss") - step.at("z_loss").get<double>());
    norm.add(number("grad_norm") / step.at("total_grad_norm_before_clip").get<double>() - 1);
    CHECK(number("lr") == Approx(step.at("lr").get<double>()).epsilon(1e-15));
  }
  const auto check = [&](const std::string& what, double found, double limit) {
    WARN(name << ", " << variant << ": " << what << " " << found << " of " << limit);
    CHECK(found <= limit);
  };
  check("ce_loss max", ce.max, same.at("ce_loss").at("max_abs"));
  check("ce_loss rms", ce.rms(), same.at("ce_loss").at("rms"));
  check("z_loss rms", z.rms(), same.at("z_loss").at("rms"));
  check("grad_norm max", norm.max, same.at("total_grad_norm_max_rel"));
  const auto weights = [&](const std::string& step, const std::string& file) {
    return spread_of(store::read_checkpoint(folder / step, true).model,
                     test::read_golden_tensors(files / file).tensors)
        .rms();
  };
  if (variant == "mixed")
    check("weights of step 1, rms", weights("step1", "mixed.step1.safetensors"),
          same.at("step1_weights").at("rms"));
  check("last weights, rms", weights("step50", variant + ".final.safetensors"),
        same.at("final_weights").at("rms"));
}

}  // namespace

TEST_CASE("AdamW with micro-batches, z-loss and a clip that warms up follows OLMo's trainer",
          "[train]") {
  const test::TemporaryDirectory folder;
  check_trajectory(committed("adamw", folder.path()), folder / "run");
}

TEST_CASE("LionW follows OLMo's trainer", "[train]") {
  const test::TemporaryDirectory folder;
  check_trajectory(committed("lionw", folder.path()), folder / "run");
}

TEST_CASE("AdamW with adaptive clipping follows OLMo's trainer", "[train]") {
  const test::TemporaryDirectory folder;
  check_trajectory(committed("adaptive", folder.path()), folder / "run");
}

TEST_CASE("a step whose last micro-batch is smaller than the others follows OLMo's trainer",
          "[train]") {
  const test::TemporaryDirectory folder;
  check_trajectory(committed("uneven", folder.path()), folder / "run");
}

TEST_CASE("attention that keeps to documents follows OLMo's trainer", "[train]") {
  const test::TemporaryDirectory folder;
  check_trajectory(committed("documents", folder.path()), folder / "run");
}

TEST_CASE("the reference trajectories in bf16 are met", "[.golden]") {
  const char* golden = std::getenv("OLMO_GOLDEN_DIR");
  if (golden == nullptr) return;
  for (const std::string name : {"olmo1b_like", "olmo7b_like"}) {
    for (const std::string variant : {"mixed", "autocast"}) {
      DYNAMIC_SECTION(name << " " << variant) {
        const test::TemporaryDirectory folder;
        check_bf16_trajectory(golden, name, variant, folder / "run");
      }
    }
  }
}

TEST_CASE("the reference trajectories are met", "[.golden]") {
  const char* golden = std::getenv("OLMO_GOLDEN_DIR");
  if (golden == nullptr) return;
  for (const std::string name : {"olmo1b_like", "olmo7b_like", "olmo7b0724_like", "adaptive_clip",
                                 "filter_selective", "lionw"}) {
    DYNAMIC_SECTION(name) {
      const test::TemporaryDirectory folder;
      check_trajectory(from_golden_dir(golden, name), folder / "run");
    }
  }
}

}  // namespace olmo::train
