#include "report/parity_margins.h"

#include <fstream>

#include "report/evaluation_fixture.h"
#include "report/side_db.h"
#include "store/runs/declarations.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::report;
using olmo::test::losses;
using olmo::test::mentions;
using olmo::test::of_kind;
using olmo::test::SideDb;

namespace {

/// Of independent trainings of 1,000 parameters, with a published deviation of their losses.
ParityReport compare_with_noise(SideDb& a, SideDb& b, std::int64_t tokens) {
  for (SideDb* side : {&a, &b}) side->sql("UPDATE runs SET n_parameters = 1000");
  const test::TemporaryDirectory folder;
  ParityOptions options = of_kind(Kind::kOutcome);
  options.noise = (folder / "noise.json").string();
  std::ofstream(options.noise) << R"({"source": "a table", "deviations": [
    {"metric": "los", "parameters": 1000, "deviation": 0.003, "tokens": 1000},
    {"metric": "loss", "parameters": 1000, "deviation": 0.003, "tokens": )"
                               << tokens << "}]}";
  return compare(a.path(), b.path(), options);
}

}  // namespace

TEST_CASE("a loss of too few points takes no published deviation, and it is said", "[report]") {
  SideDb a("lumi"), b("jupiter");
  a.add({.losses = losses(1, 12), .seed = 1});
  b.add({.losses = losses(2, 12), .seed = 2});
  const ParityReport report = compare_with_noise(a, b, 49'152);
  CHECK(mentions(report.caveats,
                 "nothing is compared here by the metric `los`, which a table tells"));
  CHECK(mentions(report.caveats, "has too few values (n = "));
  CHECK(report.noise.tests.empty());
}

TEST_CASE("a published deviation stands in for no loss that repeats have tested", "[report]") {
  SideDb a("lumi"), b("jupiter");
  for (SideDb* side : {&a, &b})
    for (const std::uint64_t seed : {2U, 1U})
      side->add({.losses = losses(seed, 100), .seed = seed, .tags = {"noise:seed"}});
  CHECK(compare_with_noise(a, b, 409'600).noise.tests.size() == 1);
}

TEST_CASE("a declaration that was altered is damage, whatever it says now", "[report]") {
  SideDb a("lumi"), b("jupiter");
  const auto in_a = a.add({.losses = losses(1, 100)});
  b.add({.losses = losses(1, 100)});
  store::declare(a.records(), in_a, "ada", "loss=0.03");
  a.sql("UPDATE declarations SET margins = 'no margin'");
  const ParityReport report = compare(a.path(), b.path(), of_kind(Kind::kTrajectory));
  CHECK(report.verdict == Verdict::kInvalidData);
  REQUIRE_FALSE(report.damage.empty());
  CHECK(report.damage[0].find("declaration 1 of margins is not what was declared") !=
        std::string::npos);
}

TEST_CASE("a repeat whose declaration was altered is left out", "[report]") {
  SideDb a("lumi"), b("jupiter");
  std::string repeat;
  for (SideDb* side : {&b, &a}) {
    repeat = side->add({.losses = losses(2, 100), .seed = 2, .tags = {"noise:seed"}});
    side->add({.losses = losses(1, 100), .seed = 1, .tags = {"noise:seed"}});
  }
  const auto tested = [&] {
    return compare(a.path(), b.path(), of_kind(Kind::kOutcome)).noise.tests;
  };
  store::declare(a.records(), repeat, "ada", "loss=0.03");
  CHECK(tested().size() == 1);
  a.sql("UPDATE declarations SET margins = 'no margin'");
  CHECK(tested().empty());
}

TEST_CASE("a record began when the earliest of its rows did", "[report]") {
  SideDb a("lumi"), b("jupiter");
  const auto in_a = a.add({.losses = losses(1, 100)});
  b.add({.losses = losses(2, 100)});
  store::declare(a.records(), in_a, "ada", "loss=0.03");
  // One row alone tells the beginning: the others would fall into the declaration's millisecond.
  b.sql("UPDATE runs SET created_utc = '2999-01-01T00:00:00.000Z'");
  b.sql("UPDATE attempts SET started_utc = '2000-01-01T00:00:00.000Z'");
  const ParityReport report = compare(a.path(), b.path(), of_kind(Kind::kTrajectory));
  CHECK(mentions(report.caveats, " began at 2000-01-01T00:00:00.000Z, before the margins of "));
}

TEST_CASE("of what both sides declared the stricter margin counts, whichever is A", "[report]") {
  SideDb a("lumi"), b("jupiter");
  const auto in_a = a.add({.losses = losses(1, 100)}), in_b = b.add({.losses = losses(1, 100)});
  store::declare(a.records(), in_a, "ada", "loss=0.03");
  store::declare(b.records(), in_b, "bob", "loss=0.02");
  CHECK(compare(a.path(), b.path(), of_kind(Kind::kTrajectory)).margins.loss.value == 0.02);
  CHECK(compare(b.path(), a.path(), of_kind(Kind::kTrajectory)).margins.loss.value == 0.02);
}
