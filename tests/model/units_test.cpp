#include "model/units.h"

#include "core/error.h"
#include "support/catch.h"
#include "support/model_config_json.h"

using namespace olmo::model;

namespace {

using Words = std::vector<std::string>;

ModelConfig config_of(std::int64_t layers, std::int64_t group = 1) {
  auto config = olmo::test::tiny_config();
  config.n_layers = layers;
  config.block_group_size = group;
  return config;
}

/// The unit of each block.
std::vector<std::size_t> units_of(const UnitMap& map) {
  std::vector<std::size_t> units;
  for (std::size_t layer = 0; layer < map.blocks(); ++layer) units.push_back(map.unit_of(layer));
  return units;
}
std::vector<std::size_t> units_of(const ModelConfig& config,
                                  const std::optional<std::string>& wrapping) {
  return units_of(UnitMap(config, wrapping));
}

/// Holds nothing and writes down what it is asked.
class RecordingUnits : public Units {
 public:
  using Units::Units;

  const ModelTensors& acquire(std::size_t unit, Pass pass) override {
    calls.push_back("acquire " + text(unit, pass));
    return nothing();
  }
  void release(std::size_t unit, Pass pass) override {
    calls.push_back("release " + text(unit, pass));
  }
  const ModelTensors& gradients(std::size_t unit) override {
    calls.push_back("gradients " + std::to_string(unit));
    return nothing();
  }
  void gradients_done(std::size_t unit) override {
    calls.push_back("done " + std::to_string(unit));
  }

  Words calls;

 private:
  const ModelTensors& nothing() {
    nothing_.blocks.resize(map().blocks());
    return nothing_;
  }
  static std::string text(std::size_t unit, Pass pass) {
    constexpr std::array<const char*, 3> kNames = {"forward", "backward", "evaluation"};
    return std::to_string(unit) + " " + kNames[static_cast<std::size_t>(pass)];
  }

  ModelTensors nothing_;
};

/// Writes down what would be computed, among the calls.
class RecordingWork : public PassWork {
 public:
  explicit RecordingWork(Words& calls) : calls_(calls) {}

  void embedding(const ModelTensors&) override { calls_.emplace_back("embedding"); }
  void block(std::size_t layer, const BlockTensors&) override {
    calls_.push_back("block " + std::to_string(layer));
  }
  void head(const ModelTensors&) override { calls_.emplace_back("head"); }
  void head_and_backward(const ModelTensors&, const ModelTensors&) override {
    calls_.emplace_back("turn");
  }
  void block_backward(std::size_t layer, const BlockTensors&, const BlockTensors&) override {
    calls_.push_back("back " + std::to_string(layer));
  }
  void embedding_backward(const ModelTensors&, const ModelTensors&) override {
    calls_.emplace_back("end");
  }

 private:
  Words& calls_;
};

Words training_calls(const UnitMap& map) {
  RecordingUnits units(map);
  RecordingWork work(units.calls);
  training_pass(units, work);
  return units.calls;
}

}  // namespace

TEST_CASE("a wrapping strategy says which blocks share a unit", "[model]") {
  using Expected = std::vector<std::size_t>;
  const auto six = config_of(6);
  CHECK(units_of(UnitMap(six)) == Expected{1, 2, 3, 4, 5, 6});
  CHECK(units_of(six, "by_block_and_size") == Expected{1, 2, 3, 4, 5, 6});
  CHECK(units_of(config_of(6, 2), "by_block_group") == Expected{1, 1, 2, 2, 3, 3});
  CHECK(units_of(config_of(6, 3), "by_block_group_and_size") == Expected{1, 1, 1, 2, 2, 2});
  CHECK(units_of(six, "one_in_two") == Expected{1, 0, 2, 0, 3, 0});
  CHECK(units_of(six, "one_in_three") == Expected{1, 0, 0, 2, 0, 0});
  CHECK(units_of(six, "one_in_four") == Expected{1, 0, 0, 0, 2, 0});
  CHECK(units_of(six, "one_in_five") == Expected{1, 0, 0, 0, 0, 2});
  CHECK(units_of(six, std::nullopt) == Expected{0, 0, 0, 0, 0, 0});
  // Groups are of no account to the other strategies.
  CHECK(units_of(config_of(6, 2), "by_block") == Expected{1, 2, 3, 4, 5, 6});
}

TEST_CASE("size_based makes units of blocks of 100 million parameters", "[model]") {
  ModelConfig config;
  config.n_layers = 2;
  config.d_model = 4096;
  config.n_heads = 32;
  config.mlp_hidden_size = 22016;
  CHECK(UnitMap(config, "size_based").size() == 3);  // a block of OLMo-7B: 202 million
  config.d_model = 2048;
  config.n_heads = 16;
  config.mlp_hidden_size = 16384;
  CHECK(UnitMap(config, "size_based").size() == 1);  // of OLMo-1B: 67 million
}

TEST_CASE("an unknown wrapping strategy, or one of groups without groups, is refused", "[model]") {
  CHECK_THROWS_AS(UnitMap(config_of(2), "by_layer"), olmo::Error);
  CHECK_THROWS_AS(UnitMap(config_of(2), "by_block_group"), olmo::Error);
}

TEST_CASE("every parameter belongs to one unit, in the order of parameter_specs", "[model]") {
  auto config = config_of(4, 2);
  config.weight_tying = false;
  const UnitMap map(config, "by_block_group");
  REQUIRE(map.size() == 3);
  std::size_t count = 0;
  for (std::size_t unit = 0; unit < map.size(); ++unit) count += map.specs(unit).size();
  CHECK(count == parameter_specs(config).size());
  CHECK(map.specs(0).front().name == "transformer.wte.weight");
  CHECK(map.specs(0).back().name == "transformer.ff_out.weight");
  CHECK(map.specs(2).front().layer == 2);
  CHECK(map.specs(2).back().layer == 3);
}

TEST_CASE("a training pass holds the root throughout and the other units while it uses them",
          "[model]") {
  CHECK(training_calls(UnitMap(config_of(2))) == Words{"acquire 0 forward",
                                                       "embedding",
                                                       "acquire 1 forward",
                                                       "block 0",
                                                       "release 1 forward",
                                                       "acquire 2 forward",
                                                       "block 1",
                                                       "release 2 forward",
                                                       "gradients 0",
                                                       "turn",
                                                       "acquire 2 backward",
                                                       "gradients 2",
                                                       "back 1",
                                                       "release 2 backward",
                                                       "done 2",
                                                       "acquire 1 backward",
                                                       "gradients 1",
                                                       "back 0",
                                                       "release 1 backward",
                                                       "done 1",
                                                       "end",
                                                       "release 0 backward",
                                                       "done 0"});
}

TEST_CASE("blocks of the root are computed between the units around them", "[model]") {
  CHECK(training_calls(UnitMap(config_of(3), "one_in_two")) == Words{"acquire 0 forward",
                                                                     "embedding",
                                                                     "acquire 1 forward",
                                                                     "block 0",
                                                                     "release 1 forward",
                                                                     "block 1",
                                                                     "acquire 2 forward",
                                                                     "block 2",
                                                                     "release 2 forward",
                                                                     "gradients 0",
                                                                     "turn",
                                                                     "acquire 2 backward",
                                                                     "gradients 2",
                                                                     "back 2",
                                                                     "release 2 backward",
                                                                     "done 2",
                                                                     "back 1",
                                                                     "acquire 1 backward",
                                                                     "gradients 1",
                                                                     "back 0",
                                                                     "release 1 backward",
                                                                     "done 1",
                                                                     "end",
                                                                     "release 0 backward",
                                                                     "done 0"});
}

TEST_CASE("blocks of a group are computed while their unit is held", "[model]") {
  CHECK(training_calls(UnitMap(config_of(2, 2), "by_block_group")) ==
        Words{"acquire 0 forward", "embedding", "acquire 1 forward", "block 0", "block 1",
              "release 1 forward", "gradients 0", "turn", "acquire 1 backward", "gradients 1",
              "back 1", "back 0", "release 1 backward", "done 1", "end", "release 0 backward",
              "done 0"});
}

TEST_CASE("an evaluation pass asks for weights alone", "[model]") {
  RecordingUnits units(UnitMap(config_of(2)));
  RecordingWork work(units.calls);
  evaluation_pass(units, work);
  CHECK(units.calls == Words{"acquire 0 evaluation", "embedding", "acquire 1 evaluation", "block 0",
                             "release 1 evaluation", "acquire 2 evaluation", "block 1",
                             "release 2 evaluation", "head", "release 0 evaluation"});
}
