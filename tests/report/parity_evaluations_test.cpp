#include "report/parity_evaluations.h"

#include <algorithm>

#include "report/side_db.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::report;
using olmo::test::losses;
using olmo::test::of_kind;
using olmo::test::SideDb;

namespace {

std::vector<char> answers(std::size_t instances, std::size_t wrong) {
  std::vector<char> right(instances, 1);
  std::fill_n(right.begin(), wrong, char{0});
  return right;
}

}  // namespace

TEST_CASE("a repeat counts by its evaluation that asked what the compared runs were asked",
          "[report]") {
  SideDb a("lumi"), b("jupiter");
  std::size_t wrong = 0;
  for (SideDb* side : {&a, &b}) {
    for (const std::uint64_t seed : {2U, 1U}) {  // the latest run of a database is compared
      const auto id =
          side->add({.losses = losses(seed, 100), .seed = seed, .tags = {"noise:seed"}});
      test::write_evaluation(side->records(), id, {{"arc", answers(50, ++wrong)}}, id);
      if (seed == 2) test::write_evaluation(side->records(), id, {{"arc", answers(20, 1)}}, id);
    }
  }
  const ParityReport report = compare(a.path(), b.path(), of_kind(Kind::kOutcome));
  const auto& tests = report.noise.tests;
  const auto found = std::find_if(tests.begin(), tests.end(), [](const Test& test) {
    return test.endpoint == Endpoint::kTask || test.endpoint == Endpoint::kMacro;
  });
  REQUIRE(found != tests.end());
  CHECK((found->k_a == 2 && found->k_b == 2));
}

TEST_CASE("a repeat counts whose tasks were asked in several evaluations, beside others",
          "[report]") {
  SideDb a("lumi"), b("jupiter");
  for (SideDb* side : {&a, &b}) {
    for (const std::uint64_t seed : {2U, 1U}) {  // the latest run of a database is compared
      const auto id =
          side->add({.losses = losses(seed, 100), .seed = seed, .tags = {"noise:seed"}});
      test::write_evaluation(side->records(), id, {{"arc", answers(50, seed)}}, id);
      test::write_evaluation(side->records(), id, {{"boolq", answers(50, seed)}}, id);
      if (seed == 2) test::write_evaluation(side->records(), id, {{"piqa", answers(9, 1)}}, id);
    }
  }
  const ParityReport report = compare(a.path(), b.path(), of_kind(Kind::kOutcome));
  const auto macro = std::ranges::find(report.noise.tests, Endpoint::kMacro, &Test::endpoint);
  REQUIRE(macro != report.noise.tests.end());
  CHECK((macro->k_a == 2 && macro->k_b == 2));
}

TEST_CASE(
    "what else a database of evaluations holds is said, and where the other side's weights are",
    "[report]") {
  SideDb a("lumi"), b("jupiter");
  for (const auto& [side, weights] :
       {std::pair(&a, "one"), std::pair(&b, "one"), std::pair(&b, "two")})
    test::write_evaluation(side->records(), weights, {{"arc", answers(50, 1)}});
  const auto ids = store::EvaluationDb(b.records()).list();
  const auto told = [&](const ParityReport& report) {
    return std::ranges::count(
        report.caveats,
        "Of B, jupiter.db, what was finished with the latest one's weights is compared; it holds 1 "
        "evaluation more, of other weights or not finished. The other side's weights are those of "
        "jupiter.db:" +
            ids[0].evaluation_id + ".");
  };
  const ParityReport latest = compare(a.path(), b.path(), {});
  CHECK(latest.kind == Kind::kOutcome);
  CHECK(told(latest) == 1);
  const ParityReport same = compare(a.path(), b.path() + ":" + ids[0].evaluation_id, {});
  CHECK(same.kind == Kind::kCheckpoint);
  CHECK(told(same) == 0);
  CHECK(told(compare(a.path(), b.path() + ":" + ids[1].evaluation_id, {})) == 0);
}

TEST_CASE("an altered evaluation that is shown and not compared is damage", "[report]") {
  SideDb a("lumi"), b("jupiter");
  std::string of_b;
  for (SideDb* side : {&a, &b}) {
    of_b = side->add({.losses = losses(1, 100)});
    test::write_evaluation(side->records(), of_b, {{"arc", answers(50, 1)}}, of_b);
  }
  test::write_evaluation(b.records(), of_b, {{"boolq", answers(50, 1)}}, of_b);
  const auto verdict = [&] { return compare(a.path(), b.path(), of_kind(Kind::kTrajectory)); };
  CHECK(verdict().damage.empty());
  b.sql("UPDATE evaluation_options SET logprob = -0.5 WHERE task = 'boolq' AND doc_id = 3");
  const ParityReport report = verdict();
  CHECK(report.verdict == Verdict::kInvalidData);
  REQUIRE_FALSE(report.damage.empty());
  CHECK(report.damage[0].find(" at step 7: boolq: its rows") != std::string::npos);
}
