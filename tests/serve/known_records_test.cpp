#include "serve/known_records.h"

#include "serve/served_runs.h"
#include "support/catch.h"

namespace olmo::serve {
namespace {

/// What is known of a run once it says `word` of it.
std::string reason_with(KnownRecords& known, test::ServedRun& run, const std::string& word) {
  std::string reason;
  test::happens([&] {
    const auto& path = run.db().path();
    reason = known.of(path, run.id(), stamp_of(path)).reason;
    return reason.find(word) != std::string::npos;
  });
  return reason;
}

}  // namespace

TEST_CASE("a record is unchecked until it has been read, and is read again once it has changed",
          "[serve]") {
  const test::TemporaryDirectory folder;
  test::ServedRun run(folder / "a", "first", 2, R"({"a key of a newer program": 1})");
  KnownRecords known(std::chrono::milliseconds(0));
  const auto first = known.of(run.db().path(), run.id(), stamp_of(run.db().path()));
  CHECK(first.is_unchecked());
  CHECK_FALSE(first.reason.empty());
  CHECK(reason_with(known, run, "does not follow").find("step 1: chain_hash") == 0);
  run.db().records().write({{"UPDATE steps SET step = 7 WHERE step = 1", {}}});
  run.db().flush();
  CHECK_FALSE(reason_with(known, run, "step 1: the record lacks it").empty());
}

TEST_CASE("a database that is gone leaves its runs unchecked", "[serve]") {
  KnownRecords known;
  report::RecordCheck check;
  test::happens([&] {
    check = known.of("/nowhere/run.db", "id", {});
    return check.reason.find("could not be read") == 0;
  });
  CHECK(check.is_unchecked());
}

}  // namespace olmo::serve
