#include "serve/known_seals.h"

#include "serve/evaluated_run.h"
#include "support/catch.h"

namespace olmo::serve {

TEST_CASE("seals of an evaluation are checked again once its database has changed", "[serve]") {
  const test::TemporaryDirectory folder;
  test::ServedRun run(folder / "a", "first", 2);
  const std::string id = test::evaluate(run, 2, test::right_one);
  store::RecordDatabase& records = run.db().records();
  KnownSeals seals;
  CHECK(seals.altered(records, id).empty());
  records.write({{"UPDATE evaluation_metrics SET value = 0.5", {}}});
  CHECK(seals.altered(records, id).size() == 1);
  CHECK(seals.altered(records, id).size() == 1);
  records.write({{"UPDATE evaluation_metrics SET value = 1.0", {}}});
  CHECK(seals.altered(records, id).empty());
}

}  // namespace olmo::serve
