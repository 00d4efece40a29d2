#include "report/parity_training.h"

#include "report/evaluation_fixture.h"
#include "report/side_db.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::report;
using olmo::test::losses;
using olmo::test::mentions;
using olmo::test::of_kind;
using olmo::test::SideDb;

TEST_CASE("independent trainings may read other data, of which no caveat is made", "[report]") {
  SideDb a("lumi"), b("jupiter");
  a.add({.losses = losses(1, 400), .seed = 1});
  b.add({.losses = losses(2, 400), .seed = 2});
  const auto caveats = [&](Kind kind) {
    return compare(a.path(), b.path(), of_kind(kind)).caveats;
  };
  const std::string parted = "noise from batch to batch";
  CHECK(mentions(caveats(Kind::kTrajectory), parted));
  CHECK_FALSE(mentions(caveats(Kind::kOutcome), parted));
}

TEST_CASE("a log of OLMo's fused loss holds the z-loss, of which a caveat is made", "[report]") {
  SideDb a("lumi"), b("jupiter");
  for (SideDb* side : {&a, &b}) side->add({.losses = losses(1, 100)});
  const auto is_told = [&](const std::string& in_b) {
    a.sql(R"(UPDATE runs SET config = '{"seed":1,"fused_loss":true}')");
    b.sql("UPDATE runs SET config = '" + in_b + "'");
    return mentions(compare(a.path(), b.path(), of_kind(Kind::kTrajectory)).caveats,
                    "OLMo's with fused_loss=true, which hold the z-loss, too");
  };
  CHECK(is_told(R"({"seed":1})"));
  CHECK_FALSE(is_told(R"({"seed":1,"fused_loss":true})"));
}
