#include "report/parity.h"

#include <algorithm>

#include "report/side_db.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::report;
using olmo::test::losses;
using olmo::test::of_kind;
using olmo::test::SideDb;

TEST_CASE("the latest run of a database is compared, and what else it holds is said", "[report]") {
  SideDb a("lumi"), b("jupiter");
  std::vector<std::string> ids;
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U, 5U})
    ids.push_back(a.add({.losses = losses(seed, 100), .seed = seed}));
  (void)b.add({.losses = losses(6, 100), .seed = 6});
  const auto told = [](const ParityReport& report) {
    return std::ranges::count_if(report.caveats, [](const std::string& caveat) {
      return caveat.find("the latest run is compared") != std::string::npos;
    });
  };
  const ParityReport latest = compare(a.path(), b.path(), of_kind(Kind::kOutcome));
  CHECK(latest.a.run->run_id == ids.back());
  CHECK(std::ranges::count(latest.caveats, "Of A, lumi.db, the latest run is compared, " +
                                               ids.back() + "; it holds 4 runs more.") == 1);
  CHECK(told(latest) == 1);
  CHECK(told(compare(a.path() + ":" + ids[0], b.path(), of_kind(Kind::kOutcome))) == 0);
}

TEST_CASE("a fact that is said to be equal contradicts nothing that one side tells", "[report]") {
  SideDb a("lumi"), b("jupiter");
  a.add({.losses = losses(1, 100)});
  b.add({.losses = losses(1, 100)});
  a.sql("UPDATE runs SET config = json_insert(config, '$.tokenizer.identifier', 'gpt2')");
  const std::string key = "tokenizer";
  const auto has = [&](const std::string& value) {
    ParityOptions options = of_kind(Kind::kTrajectory);
    options.assume[key] = value;
    const Gate gate = compare(a.path(), b.path(), options).gate;
    return std::any_of(gate.mismatches.begin(), gate.mismatches.end(),
                       [&](const Mismatch& mismatch) { return mismatch.what == key; });
  };
  CHECK_FALSE(has("equal"));
  CHECK(has("gpt-neox-20b"));
}
