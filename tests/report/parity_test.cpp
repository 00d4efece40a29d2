#include "report/parity.h"

#include <algorithm>

#include "report/side_db.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::report;
using olmo::test::losses;
using olmo::test::of_kind;
using olmo::test::SideDb;

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
