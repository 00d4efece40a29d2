#include "train/beginning.h"

#include <fstream>

#include <nlohmann/json.hpp>

#include "config/train_config.h"
#include "core/compute/libtorch.h"
#include "models/read_weights.h"
#include "store/checkpoint_fixture.h"
#include "support/catch.h"
#include "train/rank_state.h"
#include "train/small_run.h"
#include "train/stepper.h"

using namespace olmo;
using namespace olmo::train;
using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;
namespace fs = std::filesystem;

namespace {

/// What is wrong with a start in `run_dir`, of a config with these settings; "" if nothing is.
std::string problem_in(const fs::path& run_dir, const std::vector<std::string>& settings = {},
                       const fs::path& database = {}) {
  const auto config =
      config::load_config(OLMO_SOURCE_DIR "/configs/train/tiny.json", settings).config;
  const SessionOptions options{run_dir, database, {}, ""};
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

TEST_CASE("a database that could not be made is a problem of the plan", "[train]") {
  const store::test::TempFolder folder;
  const auto problem = [&](const fs::path& database) {
    return problem_in(folder / "run", {}, folder / database);
  };
  CHECK(problem("all.db").empty());
  CHECK_THAT(problem("none/all.db"),
             Contains("the run database cannot be made") && Contains("No such file or directory"));
  std::ofstream(folder / "file") << "text";
  CHECK_THAT(problem("file/all.db"), Contains("Not a directory"));
}

TEST_CASE("a start from load_path is planned from where its counters stand", "[train]") {
  const store::test::TempFolder folder;
  store::save_checkpoint(folder / "from", whole_state(3));
  const auto from = "load_path=" + (folder / "from").string();
  const auto planned = [&](const std::vector<std::string>& settings) {
    std::vector<std::string> all = {from};
    all.insert(all.end(), settings.begin(), settings.end());
    const auto config = config::load_config(OLMO_SOURCE_DIR "/configs/train/tiny.json", all).config;
    Preparation nothing;
    Problems problems;
    const auto [done, begin] =
        check_beginning({folder / "to", {}, {}, ""}, config, nothing, problems);
    CHECK(problems.all().empty());
    return std::vector<std::int64_t>{done.step, begin};
  };
  CHECK(planned({}) == std::vector<std::int64_t>{3, 3});
  CHECK(planned({"reset_optimizer_state=true"}) == std::vector<std::int64_t>{3, 3});
  CHECK(planned({"restore_dataloader=false"}) == std::vector<std::int64_t>{0, 0});
  CHECK(planned({"reset_trainer_state=true"}) == std::vector<std::int64_t>{0, 0});
  CHECK_THAT(problem_in(folder / "to", {"load_path=" + (folder / "absent").string()}),
             Contains("absent"));
}

TEST_CASE("load_path of another software's folder is refused with the way to go", "[train]") {
  const std::string theirs = OLMO_TEST_DATA "/train/olmo_checkpoint";
  const test::TemporaryDirectory folder;
  CHECK_THAT(
      problem_in(folder / "to", {"load_path=" + theirs}),
      Contains("import it first (`olmo-harness checkpoint import " + theirs + " --to DIR`)"));
}

TEST_CASE("load_path takes no moments of another optimizer over", "[train]") {
  const store::test::TempFolder folder;
  auto contents = whole_state(3);
  contents.config = Json{{"optimizer", {{"name", "lionw"}}}};
  store::save_checkpoint(folder / "from", contents);
  const auto from = "load_path=" + (folder / "from").string();
  CHECK_THAT(problem_in(folder / "to", {from}),
             Contains("`optimizer.name` is adamw, and ") && Contains("the moments of lionw"));
  CHECK(problem_in(folder / "to", {from, "optimizer.name=lionw"}).empty());
  CHECK(problem_in(folder / "to", {from, "reset_optimizer_state=true"}).empty());
  CHECK(problem_in(folder / "to", {from, "reset_optimizer_state=true", "reset_trainer_state=true"})
            .empty());
}

TEST_CASE("what a branch does otherwise than OLMo, and where its data go on, is noted", "[train]") {
  Start start{"x/step3", store::test::example(3), {}};
  start.contents.config = Json{{"optimizer", {{"betas", {0.5, 0.6}}, {"weight_decay", 0.1}}}};
  start.saved.position = {.step = 3, .epoch = 1, .instance = 8};
  const auto notes = [&](const std::vector<std::string>& settings) {
    std::vector<std::string> all = {"load_path=x", "global_train_batch_size=4",
                                    "optimizer.betas=[0.5, 0.6]", "max_duration=9ep", "stop_at=4"};
    all.insert(all.end(), settings.begin(), settings.end());
    return notes_of_beginning(start, small_config("t.npy", all), 20);
  };
  CHECK(notes({}).empty());
  CHECK(notes({"optimizer.betas=[0.5, 0.7]"}) ==
        std::vector<std::string>{"`optimizer.betas` is [0.5,0.7], where OLMo would go on with that "
                                 "of x/step3, [0.5,0.6]"});
  CHECK(notes({"optimizer.weight_decay=0.3"}).empty());
  CHECK(notes({"optimizer.weight_decay=0.3", "reset_trainer_state=true"}).size() == 1);
  CHECK(notes({"epoch=2"}) ==
        std::vector<std::string>{"the data go on with instance 0 of epoch 2; x/step3 stands before "
                                 "instance 8 of epoch 1"});
  CHECK(notes({"fast_forward_batches=1"})
            .at(0)
            .starts_with("the data go on with instance 12 of epoch 1; "));
  CHECK(notes({"fast_forward_batches=9"})
            .at(0)
            .starts_with("the data go on with instance 0 of epoch 2; "));
  CHECK(notes({"optimizer.betas=[0, 0]", "reset_optimizer_state=true"}).empty());
  CHECK(notes({"optimizer.betas=[0, 0]", "reset_optimizer_state=true", "reset_trainer_state=true"})
            .empty());
  start.contents.config = Json{{"optimizer", {{"betas", {0.5, 0.6}}, {"weight_decay", 0.0}}}};
  CHECK(notes({"optimizer.weight_decay=0.0"}).empty());
  CHECK(notes({"optimizer.weight_decay=0.3"}).size() == 1);  // OLMo sets no decay where none was
  CHECK(notes({"optimizer.weight_decay=0.3", "reset_optimizer_state=true"}).empty());
}

TEST_CASE("a new warm-up that OLMo counts in steps, beside a schedule in tokens, is noted",
          "[train]") {
  Start start{"x/step3", store::test::example(3), {}};
  start.saved.position.step = start.saved.state.step = 3;
  start.saved.state.tokens = 3000;
  const auto notes = [&](const std::string& units, const std::string& warmup) {
    return notes_of_beginning(
        start,
        small_config("t.npy", {"load_path=x", "reset_optimizer_state=true",
                               "scheduler.units=" + units, "scheduler.t_warmup=" + warmup}),
        2000);
  };
  CHECK(notes("steps", "2000").empty());
  CHECK(notes("tokens", "2998").empty());  // it ends with token 3001
  CHECK(
      notes("tokens", "2997") ==
      std::vector<std::string>{
          "the learning rate is not warmed up anew: OLMo ends the new warm-up with token 3000, its "
          "step 3 plus `scheduler.t_warmup`, and x/step3 has seen 3000 tokens"});
}

TEST_CASE("where OLMo's last epoch ends before max_duration is noted", "[train]") {
  Start start{"x/step3", store::test::example(3), {}};
  start.contents.config = Json::object();
  start.saved.position = {.step = 3, .epoch = 1, .instance = 8};
  start.saved.state.step = 3;
  const auto notes = [&](std::vector<std::string> settings, const std::optional<Start>& taken) {
    settings.emplace_back("global_train_batch_size=4");
    return notes_of_beginning(taken, small_config("t.npy", settings), 20);
  };
  CHECK(notes({"max_duration=2ep"}, start) ==
        std::vector<std::string>{"OLMo would end with step 6: it takes `max_duration` for 2 epochs "
                                 "of 5 steps, and the training begins with instance 8 of epoch 1; "
                                 "stop_at=6 ends it there"});
  CHECK(notes({"max_duration=2ep", "stop_at=6"}, start).empty());
  CHECK(notes({"max_duration=2ep", "stop_at=7"}, start).size() == 1);
  CHECK(notes({"max_duration=6"}, start).empty());
  CHECK(notes({"max_duration=7"}, start).size() == 1);
  CHECK(notes({"max_duration=3"}, start).empty());  // nothing is left to train here, either

  const auto of_first = notes({"max_duration=1ep", "epoch=1"}, std::nullopt);
  REQUIRE(of_first.size() == 1);
  CHECK_THAT(of_first[0], StartsWith("OLMo would train no step: it takes `max_duration` for 1 ") &&
                              EndsWith("begins with instance 0 of epoch 1"));
  CHECK(notes({"max_duration=2ep"}, std::nullopt).empty());
  CHECK(notes({"max_duration=7"}, std::nullopt).empty());
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
  begin_at(stepper, none, StartOf::kThisRun, beginning.weights);
  CHECK(models::weights_digest(stepper.parameters()) == recorded);
}
