#include "train/beginning.h"

#include <nlohmann/json.hpp>

#include "config/train_config.h"
#include "models/read_weights.h"
#include "store/checkpoint_fixture.h"
#include "support/catch.h"
#include "train/small_run.h"
#include "train/stepper.h"

using namespace olmo;
using namespace olmo::train;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

/// What is wrong with a start in `run_dir`, of a config with these settings; "" if nothing is.
std::string problem_in(const fs::path& run_dir, const std::vector<std::string>& settings = {}) {
  const auto config =
      config::load_config(OLMO_SOURCE_DIR "/configs/train/tiny.json", settings).config;
  const SessionOptions options{run_dir, {}, {}, ""};
  Preparation nothing;
  Problems problems;
  check_beginning(options, config, nothing, problems);
  REQUIRE(problems.all().size() <= 1);
  return problems.all().empty() ? "" : problems.all().front().what();
}

Stepper stepper_of(const config::TrainConfig& config) {
  return {config, resolve_policy("portable", "auto", 1),
          data::BatchSource(config::batch_config(config))};
}

}  // namespace

TEST_CASE("a new run begins in a folder without checkpoints, or in one it may overwrite",
          "[train]") {
  const store::test::TempFolder folder;
  CHECK(problem_in(folder.path()).empty());
  CHECK(problem_in(folder / "to come").empty());
  const auto saved = store::save_checkpoint(folder.path(), store::test::example(3)).path;
  CHECK_THAT(problem_in(folder.path()), Contains("(the last is step3): go on with --resume"));
  CHECK(problem_in(folder.path(), {"save_overwrite=true"}).empty());
  fs::resize_file(saved / "checkpoint.h5", 10);
  CHECK_THAT(problem_in(folder.path()),
             Contains("none of which can be read (") && Contains("): choose another --run-dir"));
}

TEST_CASE("load_path takes over weights and counters together, or nothing", "[train]") {
  const store::test::TempFolder folder;
  const auto from = "load_path=" + (folder / "absent").string();
  CHECK_THAT(problem_in(folder.path(), {from}), Contains("absent"));
  CHECK_THAT(problem_in(folder.path(), {from, "reset_optimizer_state=true"}),
             Contains("must be equal here"));
}

TEST_CASE("of a run that goes on, those weights are read that were recorded", "[train]") {
  const test::TemporaryDirectory folder;
  const auto tokens = write_tokens(folder);
  const auto config_with = [&](const std::string& setting) {
    return small_config(tokens, {"global_train_batch_size=4", setting});
  };
  const auto save = [&](std::int64_t step, const std::string& seed) {
    Stepper drawn = stepper_of(config_with("seed=" + seed));
    drawn.init_weights();
    store::CheckpointContents contents;
    contents.kind = store::CheckpointKind::kWeights;
    contents.trainer = Json{{"step", step}};
    contents.config = Json::object();
    contents.model = drawn.parameters();
    store::save_checkpoint(folder / "other", contents);
    return models::weights_digest(drawn.parameters());
  };
  const Digest recorded = save(1, "1");
  const auto config = config_with("load_weights=" + (folder / "other").string());
  const store::RunLock lock(folder / "run");
  const Preparation nothing;
  const Beginning beginning =
      find_beginning({folder / "run", {}, {}, ""}, config, nothing, lock, read_start);
  REQUIRE_FALSE(beginning.inputs.empty());
  CHECK_THAT(beginning.inputs.front().path, Contains("/other/step1/"));

  REQUIRE(save(2, "2") != recorded);
  Stepper stepper = stepper_of(config);
  std::optional<Start> none;
  begin_at(stepper, none, /*with_state=*/false, beginning.weights);
  CHECK(models::weights_digest(stepper.parameters()) == recorded);
}
