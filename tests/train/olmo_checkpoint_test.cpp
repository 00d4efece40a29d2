#include "train/olmo_checkpoint.h"

#include <algorithm>
#include <fstream>

#include <nlohmann/json.hpp>

#include "core/files/input_file.h"
#include "core/files/json.h"
#include "models/convert_model.h"
#include "store/checkpoint/checkpoint.h"
#include "store/foreign/safetensors.h"
#include "store/runs/recorded_run.h"
#include "support/catch.h"
#include "support/temporary_directory.h"
#include "support/zip.h"
#include "train/reference_tokens.h"
#include "train/session_alone.h"

using namespace olmo;
using namespace olmo::train;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

const fs::path kGolden = OLMO_TEST_DATA "/train/olmo_checkpoint";

/// What OLMo's checkpoint at `from` becomes.
TakenState taken_to(const fs::path& to, const fs::path& from) {
  TakenState taken;
  models::import_model(from, to, [&](const auto& source, auto& contents) {
    taken = add_olmo_state(source, contents);
  });
  return taken;
}

std::optional<OlmoState> import_to(const fs::path& to, const fs::path& from = kGolden) {
  return taken_to(to, from).state;
}

void name_lionw(const fs::path& config) {
  std::string text = read_file(config);
  text.replace(text.find("name: adamw"), 11, "name: lionw");
  std::ofstream(config) << text;
}

}  // namespace

TEST_CASE("a training goes on from OLMo's own checkpoint as OLMo does", "[train]") {
  const test::TemporaryDirectory folder;
  const auto saved = import_to(folder / "olmo");
  REQUIRE(saved);
  CHECK(saved->state.step == 8);
  CHECK(saved->state.tokens == 8 * 8 * 32);
  CHECK(saved->position == DataPosition{8, 1, 16});
  CHECK(saved->counters == "train.pt");
  write_reference_tokens(folder / "tokens.npy");
  const auto loaded = config::load_config(
      kGolden / "config.yaml", {"data.paths=[" + (folder / "tokens.npy").string() + "]",
                                "threads=1", "load_path=" + (folder / "olmo/step8").string(),
                                "save_interval=null", "tokenizer.identifier=none"});
  const auto ended = run_session(loaded, {folder / "run", {}, {}, "test"});
  const auto db = store::RunDb::open(ended.database, store::OpenMode::kReadOnly);
  const auto run = store::read_run(db.records(), ended.run_id);
  const Json after = read_json_file(kGolden / "after.json");
  REQUIRE(run.steps.size() == after.size());
  for (std::size_t i = 0; i < after.size(); ++i) {
    const Json& step = after[i];
    CHECK(run.steps.step[i] == step.at("step"));
    CHECK(run.steps.tokens[i] == step.at("tokens"));
    CHECK(run.steps.epoch[i] == step.at("epoch"));
    CHECK(run.steps.lr[i] == Approx(step.at("lr").get<double>()).epsilon(1e-12));
    CHECK(run.steps.loss[i] == Approx(step.at("ce_loss").get<double>()).margin(3e-6));
    CHECK(run.steps.grad_norm[i] == Approx(step.at("total_grad_norm").get<double>()).epsilon(1e-5));
  }
}

TEST_CASE("a training goes on from OLMo-core's checkpoint as OLMo-core does", "[train]") {
  const fs::path golden = OLMO_TEST_DATA "/train/olmo_core_checkpoint";
  const test::TemporaryDirectory folder;
  const auto saved = import_to(folder / "core", golden);
  REQUIRE(saved);
  CHECK(saved->state.step == 8);
  CHECK(saved->state.tokens == 8 * 8 * 32);
  CHECK(saved->position == DataPosition{8, 1, 16});
  write_reference_tokens(folder / "tokens.npy");
  const fs::path checkpoint = folder / "core/step8";
  std::ofstream(folder / "config.json") << store::CheckpointReader(checkpoint).config().dump();
  const auto loaded = config::load_config(
      folder / "config.json", {"data.paths=[" + (folder / "tokens.npy").string() + "]", "threads=1",
                               "device_train_microbatch_size=4", "load_path=" + checkpoint.string(),
                               "save_interval=null", "tokenizer.identifier=none"});
  const auto ended = run_session(loaded, {folder / "run", {}, {}, "test"});
  const auto db = store::RunDb::open(ended.database, store::OpenMode::kReadOnly);
  const auto steps = store::read_run(db.records(), ended.run_id).steps;
  const Json after = read_json_file(golden / "after.json");
  REQUIRE(steps.size() == after.size());
  constexpr double kLabels = 31.0 / 32;  // of the tokens, which gradients are means over here
  for (std::size_t i = 0; i < after.size(); ++i) {
    const Json& step = after[i];
    CHECK(steps.step[i] == step.at("step"));
    CHECK(steps.tokens[i] == step.at("tokens"));
    CHECK(steps.lr[i] == Approx(step.at("lr").get<double>()).epsilon(1e-12));
    CHECK(steps.loss_per_label[i] == Approx(step.at("ce_loss").get<double>()).margin(3e-6));
    CHECK(steps.grad_norm[i] ==
          Approx(step.at("total_grad_norm").get<double>() * kLabels).epsilon(1e-5));
  }
}

TEST_CASE("of OLMo-core's checkpoints that AdamW cannot go on from the weights are taken",
          "[train]") {
  const auto left_out = [](const auto& change) {
    const test::TemporaryDirectory folder;
    fs::copy(OLMO_TEST_DATA "/train/olmo_core_checkpoint", folder / "from",
             fs::copy_options::recursive);
    change(folder / "from");
    const auto taken = taken_to(folder / "to", folder / "from");
    CHECK_FALSE(taken.state);
    CHECK(fs::exists(folder / "to/step0"));
    return taken.left_out;
  };
  const auto with_optim = [](const Json& changes) {
    return [changes](const fs::path& folder) {
      Json config = read_json_file(folder / "config.json");
      config["train_module"]["optim"].update(changes);
      std::ofstream(folder / "config.json") << config.dump();
    };
  };
  CHECK_THAT(left_out(with_optim({{"_CLASS_", "a.LionConfig"}})), Contains("a.LionConfig"));
  const std::string many(
      "\x80\x02}(X\x0b\0\0\0global_stepMd\0X\x18\0\0\0global_train_tokens_seenK\x01"
      "X\x0b\0\0\0data_loader}(X\x05\0\0\0epochK\x01X\x10\0\0\0tokens_processedK\x01uu.",
      110);
  CHECK_THAT(
      left_out([&](const fs::path& folder) {
        test::write_zip(folder / "train/rank0.pt", {{"archive/data.pkl", many}}, ZIP_CM_STORE);
      }),
      Contains("counts 9 updates in 100 steps"));
  CHECK_THAT(left_out([](const fs::path& folder) { fs::remove_all(folder / "train"); }),
             Contains("train/rank0.pt is not there"));
  const test::TemporaryDirectory folder;
  CHECK(taken_to(folder / "to", OLMO_TEST_DATA "/train/olmo_core/olmo2").left_out.empty());
}

TEST_CASE("counters that OLMo-core did not write are refused", "[train]") {
  const test::TemporaryDirectory folder;
  fs::copy(OLMO_TEST_DATA "/train/olmo_core_checkpoint", folder / "from",
           fs::copy_options::recursive);
  test::write_zip(folder / "from/train/rank0.pt", {{"archive/data.pkl", "\x80\x02}."}},
                  ZIP_CM_STORE);
  CHECK_THROWS_WITH(import_to(folder / "to", folder / "from"),
                    Contains("holds no `global_step` from 0"));
  CHECK_FALSE(fs::exists(folder / "to"));
}

TEST_CASE("what OLMo saved in shards becomes what it saved whole", "[train]") {
  const auto [name, counters] = GENERATE(table<const char*, const char*>({
      {"torch_new", "train/rank0.pt"},
      {"torch_legacy", "rank0.pt"},
      {"local", ""},
      {"olmo_core", ""},
  }));
  INFO(name);
  const test::TemporaryDirectory folder;
  fs::copy(kGolden / ".." / "olmo_shards" / name, folder / "from", fs::copy_options::recursive);
  fs::copy(kGolden / "config.yaml", folder / "from");
  const auto saved = import_to(folder / "shards", folder / "from"),
             whole = import_to(folder / "whole");
  REQUIRE(saved);
  CHECK(saved->counters == counters);
  CHECK(saved->state.chain == whole->state.chain);  // over all tensors
  if (!saved->counters.empty()) CHECK(saved->position == whole->position);
}

TEST_CASE("without train.pt the counters are reckoned from the number of updates", "[train]") {
  const test::TemporaryDirectory folder;
  fs::copy(kGolden, folder / "from");
  fs::remove(folder / "from/train.pt");
  const auto saved = import_to(folder / "olmo", folder / "from");
  REQUIRE(saved);
  CHECK(saved->state.tokens == 8 * 8 * 32);
  CHECK(saved->position == DataPosition{8, 0, 64});
  CHECK(saved->counters.empty());
}

TEST_CASE("the counters of older trainers of OLMo have their names", "[train]") {
  const test::TemporaryDirectory folder;
  fs::copy(kGolden, folder / "from");
  const auto position_of = [&](const std::string& members) {
    const std::string pickle = "\x80\x02}(" + members + "u.";
    test::write_zip(folder / "from/train.pt", {{"archive/data.pkl", pickle}}, ZIP_CM_STORE);
    fs::remove_all(folder / "to");
    return import_to(folder / "to", folder / "from");
  };
  const std::string step("X\x0b\0\0\0global_stepK\x09", 18),
      data_step("X\x10\0\0\0global_data_stepK\x0a", 23),
      examples("X\x1a\0\0\0global_train_examples_seenM\x01\x01", 34);
  auto saved = position_of(step);  // batches of 8 x 32 tokens
  CHECK(saved->position == DataPosition{9, 0, 72});
  CHECK(saved->state.tokens == 9 * 256);
  saved = position_of(step + data_step);
  CHECK(saved->position == DataPosition{9, 0, 80});
  CHECK(saved->state.tokens == 10 * 256);
  CHECK(position_of(step + examples)->position == DataPosition{9, 0, 257});
  CHECK_THROWS_WITH(position_of(examples), Contains("train.pt: holds no `global_step`"));
  const std::string large("X\x0b\0\0\0global_step\x8a\x08\0\0\0\0\0\0\0\x40", 26);
  CHECK_THROWS_WITH(position_of(large), Contains("`global_step` is 4611686018427387904, expected"));
}

TEST_CASE("a train.pt that is damaged, or another file, is refused by name", "[train]") {
  const test::TemporaryDirectory folder;
  fs::copy(kGolden, folder / "from");
  const auto refused = [&](const std::string& bytes, const char* says) {
    std::ofstream(folder / "from/train.pt", std::ios::binary) << bytes;
    CHECK_THROWS_WITH(import_to(folder / "to", folder / "from"),
                      Contains("train.pt: ") && Contains(says));
    CHECK_FALSE(fs::exists(folder / "to"));
  };
  std::string bytes = read_file(folder / "from/train.pt");
  refused(bytes.substr(0, bytes.size() / 2), "the zip file is cut");
  const auto place = bytes.find("global_train_tokens_seen");
  REQUIRE(place != std::string::npos);
  bytes[place] = 'G';
  refused(bytes, "do not have their checksum");
  refused("", "the zip file is cut");
}

TEST_CASE("weights without an optimizer's state are imported alone", "[train]") {
  const test::TemporaryDirectory folder;
  fs::create_directory(folder / "from");
  for (const char* file : {"config.yaml", "model.safetensors"})
    fs::copy(kGolden / file, folder / "from" / file);
  CHECK_FALSE(import_to(folder / "weights", folder / "from"));
  CHECK(store::CheckpointReader(folder / "weights/step0").kind() ==
        store::CheckpointKind::kWeights);
}

TEST_CASE("the state of another optimizer than the config names is not imported", "[train]") {
  const test::TemporaryDirectory folder;
  fs::copy(kGolden, folder / "from");
  name_lionw(folder / "from/config.yaml");
  CHECK_THROWS_WITH(import_to(folder / "to", folder / "from"),
                    Contains("config.yaml: `optimizer.name` is lionw, expected adamw"));
  CHECK_FALSE(fs::exists(folder / "to"));
}

TEST_CASE("a state of LionW has made as many updates as train.pt counts", "[train]") {
  const test::TemporaryDirectory folder;
  fs::copy(kGolden, folder / "from");
  name_lionw(folder / "from/config.yaml");
  const store::SafetensorsFile golden(kGolden / "optim.safetensors");
  NamedTensors tensors;
  for (const auto& entry : golden.entries()) {
    const auto names = store::decode_olmo_path(entry.name);
    if (names.size() != 3 || names[2] == "exp_avg")
      tensors.push_back({entry.name, golden.tensor(entry.name)});
  }
  store::write_safetensors(folder / "from/optim.safetensors", tensors);
  const auto saved = import_to(folder / "to", folder / "from");
  REQUIRE(saved);
  CHECK(saved->state.step == 8);
  const auto contents = store::read_checkpoint(folder / "to/step8");
  CHECK(contents.kind == store::CheckpointKind::kFull);
  const auto step =
      std::ranges::find(contents.optim, "step/transformer.ln_f.weight", &NamedTensor::name);
  CHECK(host_value<std::int64_t>(step->tensor) == 8);

  fs::remove(folder / "from/train.pt");
  CHECK_THROWS_WITH(import_to(folder / "again", folder / "from"),
                    Contains("holds no train.pt, and the state of LionW does not tell"));
}
