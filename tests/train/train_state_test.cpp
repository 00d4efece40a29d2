#include "train/train_state.h"

#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "support/catch.h"
#include "support/temporary_directory.h"
#include "train/small_run.h"

using namespace olmo;

namespace {

Json a_state() {
  return {{"step", 3},
          {"tokens_seen", 768},
          {"run_id", "r"},
          {"experiment_digest", std::string(64, 'e')},
          {"chain_format", 2},
          {"chain_hash", std::string(64, 'c')},
          {"data", {{"epoch", 1}, {"start_index", 8}}}};
}

/// A config of the trainings that OLMo walked through (make_branches.py), with instances of two
/// tokens.
config::TrainConfig config_of(const test::TemporaryDirectory& folder, const Json& golden,
                              const Json& settings) {
  std::vector<std::string> words = {"model.max_sequence_length=2", "load_path=p",
                                    "seed=" + golden.at("seed").dump(),
                                    "global_train_batch_size=" + golden.at("batch_size").dump()};
  for (const auto& [key, value] : settings.items()) words.push_back(key + "=" + value.dump());
  const std::vector<char> tokens(4 * golden.at("instances").get<std::size_t>());
  const auto path = folder / "tokens.npy";
  std::ofstream(path, std::ios::binary).write(tokens.data(), std::ssize(tokens));
  return train::small_config(path, words);
}

}  // namespace

TEST_CASE("a checkpoint that does not name the format of its chain has the first", "[train]") {
  Json state = a_state();
  CHECK(train::read_state(state, "here").chain_format == 2);
  state.erase("chain_format");
  CHECK(train::read_state(state, "here").chain_format == 1);
}

TEST_CASE("a state that lacks a counter is damaged, and the counter is named", "[train]") {
  Json state = a_state();
  state.erase("tokens_seen");
  CHECK_THROWS_WITH(train::read_state(state, "here"),
                    "here: the trainer state has no usable `tokens_seen`");
}

TEST_CASE("a state whose place in the data is none is damaged", "[train]") {
  Json state = a_state();
  CHECK(train::read_state(state, "here").position == DataPosition{3, 1, 8});
  for (const Json& wrong : {Json(-1), Json(1e300), Json(8.5), Json("8"), Json(UINT64_MAX),
                            Json((std::int64_t{1} << 53) + 1)}) {
    state["data"]["start_index"] = wrong;
    CHECK_THROWS_WITH(train::read_state(state, "here"),
                      "here: the trainer state has no usable `start_index`: expected a whole "
                      "number from 0 to 2^53");
  }
  state["data"] = {{"epoch", 1}};
  CHECK_THROWS_WITH(train::read_state(state, "here"),
                    "here: the trainer state has no usable `start_index`");
}

TEST_CASE("a run goes on where it began, and an older version's at the first instance", "[train]") {
  config::TrainConfig config;
  config.epoch = 2;
  Json state = a_state();
  CHECK(train::begin_of_run(train::read_state(state, "here"), config) == DataPosition{0, 2, 0});
  state["data"]["begin"] = {{"step", 1}, {"epoch", 1}, {"start_index", 5}};
  CHECK(train::begin_of_run(train::read_state(state, "here"), config) == DataPosition{1, 1, 5});
}

TEST_CASE("a run that takes over a checkpoint sees the instances that OLMo's trainer would",
          "[train]") {
  const Json golden = read_json_file(std::string(OLMO_TEST_DATA) + "/train/branches.json");
  const test::TemporaryDirectory folder;
  for (const Json& example : golden.at("cases")) {
    INFO(example.dump());
    const data::BatchSource before(config::batch_config(config_of(folder, golden, Json::object())));
    const train::SavedState saved{
        .state = {},
        .position = before.position_after(example.at("steps").get<std::uint64_t>()),
        .begin = {},
        .run_id = {},
        .experiment_digest = {}};
    const auto config = config_of(folder, golden, example.at("settings"));
    data::BatchSource branch(config::batch_config(config));
    branch.begin_at(train::begin_of_branch(saved, config));
    for (const Json& step : example.at("seen")) {
      CHECK(branch.epoch_of(step.at(0)) == step.at(1).get<std::uint64_t>());
      CHECK(Json(branch.indices(step.at(0))) == step.at(2));
    }
  }
}
