#include "report/claims/claim.h"

#include "core/error.h"
#include "support/catch.h"

using namespace olmo::report;

TEST_CASE("each endpoint has a margin of its own", "[report]") {
  Margins margins;
  margins.loss.value = 1;
  margins.macro.value = 2;
  margins.bpb.value = 3;
  margins.task.value = 4;
  CHECK(margins.of(Endpoint::kLoss).value == 1);
  CHECK(margins.of(Endpoint::kMacro).value == 2);
  CHECK(margins.of(Endpoint::kBpb).value == 3);
  CHECK(margins.of(Endpoint::kTask).value == 4);
}

TEST_CASE("a margin is declared, else given, else from repeats, else a default", "[report]") {
  MarginSources sources{.declared = {{"loss", {0.005, "ada", "2026-01-02T03:04:05Z"}}},
                        .command_line = {{"loss", 0.5}, {"task", 2}},
                        .loss_deviation = RepeatDeviation{0.001},
                        .macro_deviation = RepeatDeviation{0.4}};
  const Margins margins = resolve_margins(sources);
  CHECK(margins.loss.value == 0.005);
  CHECK(margins.loss.source == MarginSource::kDeclared);
  CHECK(margins.loss.who == "ada");
  CHECK(margins.task.value == 2);
  CHECK(margins.task.source == MarginSource::kCommandLine);
  CHECK(margins.macro.value == 0.8);
  CHECK(margins.macro.source == MarginSource::kRepeats);
  CHECK(margins.bpb.value == 0.002);
  CHECK(margins.bpb.source == MarginSource::kDefault);
  CHECK(resolve_margins({.one_trajectory = true}).loss.value == 0.002);
  CHECK(resolve_margins({}).loss.value == 0.01);
  CHECK(resolve_margins({}).macro.value == 0.5);
}

TEST_CASE("repeats that vary absurdly do not give an absurd margin", "[report]") {
  const Margins wide = resolve_margins(
      {.loss_deviation = RepeatDeviation{0.032}, .macro_deviation = RepeatDeviation{5}});
  CHECK(wide.loss.value == 0.02);
  CHECK(wide.macro.value == 2);
  CHECK(wide.loss.reason.find("not more than 0.02") != std::string::npos);
  CHECK(resolve_margins({.loss_deviation = RepeatDeviation{0}}).loss.value == 0.002);
}

TEST_CASE("margins are read by name, each once and positive", "[report]") {
  CHECK(parse_margins("loss=0.01,macro=0.5,task=1,bpb=2e-3") ==
        GivenMargins{{"loss", 0.01}, {"macro", 0.5}, {"task", 1}, {"bpb", 0.002}});
  for (const char* wrong : {"loss", "loss=", "loss=0", "loss=-1", "loss=inf", "loss=1x", "width=1",
                            "loss=1,loss=2", "=1", "loss=0.1,,task=1"})
    CHECK_THROWS_AS(parse_margins(wrong), olmo::Error);
}
