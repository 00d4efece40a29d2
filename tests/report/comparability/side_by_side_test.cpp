#include "report/comparability/side_by_side.h"

#include <algorithm>
#include <array>

#include "support/catch.h"

using namespace olmo;
using namespace olmo::report;
using config::MismatchClass;

namespace {

const SettingLine& line_of(const std::vector<SettingLine>& lines, const std::string& key) {
  const auto found = std::ranges::find(lines, key, &SettingLine::key);
  REQUIRE(found != lines.end());
  return *found;
}

}  // namespace

TEST_CASE("each key of several runs is a line with the value of each", "[report]") {
  const std::array<Settings, 3> runs = {{{{"a", "1"}, {"b", "2"}}, {{"a", "1.0"}}, {{"a", "1"}}}};
  const auto lines = side_by_side(runs);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].key == "a");
  CHECK_FALSE(lines[0].differs);
  CHECK(lines[1].differs);
  CHECK(lines[1].values == std::vector<std::optional<std::string>>{"2", {}, {}});
}

TEST_CASE("a run that differs is found wherever it stands", "[report]") {
  const std::array<Settings, 3> runs = {{{{"a", "1"}}, {{"a", "1"}}, {{"a", "2"}}}};
  CHECK(side_by_side(runs)[0].differs);
}

TEST_CASE("what an import does not state is neither equal nor different", "[report]") {
  const std::array<StatedConfig, 3> runs = {
      {{{{"seed", "1"}, {"optimizer.learning_rate", "1"}}, false},
       {{{"optimizer.learning_rate", "1"}}, true},
       {{{"optimizer.learning_rate", "2"}, {"seed", "1"}}, false}}};
  const auto lines = configs_side_by_side(runs);
  CHECK(line_of(lines, "seed").untold);
  CHECK_FALSE(line_of(lines, "seed").differs);
  CHECK(line_of(lines, "optimizer.learning_rate").differs);
}

TEST_CASE("runs that state other values of a key differ, though an import does not state it",
          "[report]") {
  const std::array<StatedConfig, 3> runs = {{{{}, true},
                                             {{{"optimizer.learning_rate", "1"}}, false},
                                             {{{"optimizer.learning_rate", "2"}}, false}}};
  const auto line = line_of(configs_side_by_side(runs), "optimizer.learning_rate");
  CHECK(line.differs);
  CHECK_FALSE(line.untold);
}

TEST_CASE("a line of a config says what a difference means", "[report]") {
  const std::array<StatedConfig, 2> runs = {
      {{{{"model.d_model", "8"}}, false}, {{{"model.d_model", "16"}}, false}}};
  const auto line = line_of(configs_side_by_side(runs), "model.d_model");
  CHECK(line.mismatch == MismatchClass::kFatal);
  CHECK_FALSE(line.reason.empty());
}

TEST_CASE("keys of precision that round nothing else are benign", "[report]") {
  const std::array<StatedConfig, 2> runs = {
      {{{{"precision", R"("fp32")"}, {"fsdp.precision", R"("pure")"}}, false},
       {{{"precision", R"("fp32")"}, {"fsdp.precision", R"("mixed")"}}, false}}};
  const auto line = line_of(configs_side_by_side(runs), "fsdp.precision");
  CHECK(line.differs);
  CHECK(line.mismatch == MismatchClass::kBenign);
}

TEST_CASE("a fused loss is a confound only where it adds a z-loss that nobody asked for",
          "[report]") {
  const auto class_of = [](const std::string& z_loss) {
    const std::array<StatedConfig, 2> runs = {
        {{{{"fused_loss", "false"}, {"softmax_auxiliary_loss", z_loss}}, false},
         {{{"fused_loss", "true"}, {"softmax_auxiliary_loss", z_loss}}, true}}};
    return line_of(configs_side_by_side(runs), "fused_loss").mismatch;
  };
  CHECK(class_of("false") == MismatchClass::kConfound);
  CHECK(class_of("true") == MismatchClass::kBenign);
}

TEST_CASE("the weight of a z-loss that no run adds is benign", "[report]") {
  const auto class_of = [](const std::string& z_loss) {
    const std::array<StatedConfig, 2> runs = {
        {{{{"auxiliary_loss_multiplier", "1e-4"}, {"softmax_auxiliary_loss", z_loss}}, false},
         {{{"auxiliary_loss_multiplier", "1e-5"}, {"softmax_auxiliary_loss", z_loss}}, false}}};
    return line_of(configs_side_by_side(runs), "auxiliary_loss_multiplier").mismatch;
  };
  CHECK(class_of("false") == MismatchClass::kBenign);
  CHECK(class_of("true") == MismatchClass::kConfound);
}

TEST_CASE("of a machine those facts count that stay", "[report]") {
  const Settings facts = machine_of(R"({"host":"a","load":3,"devices":{"gpu":1}})", "a record");
  CHECK(facts == Settings{{"host", R"("a")"}, {"devices.gpu", "1"}});
}
