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
