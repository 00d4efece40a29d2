#include "report/claim.h"

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
