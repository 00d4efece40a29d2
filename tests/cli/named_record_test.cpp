#include "cli/named_record.h"

#include "cli/training.h"
#include "store/plain_records.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace olmo::test {
namespace {

std::string add_run(const std::filesystem::path& database, const std::string& name) {
  auto db = store::RunDb::open(database, store::OpenMode::kCreate);
  std::string id = db.begin_run(plain_run(name), plain_attempt(), {});
  db.end_attempt("finished");
  return id;
}

}  // namespace

TEST_CASE("a database that is named alone stands for its latest run", "[cli]") {
  const TemporaryDirectory folder;
  const auto first = add_run(folder / "a.db", "first"), last = add_run(folder / "a.db", "last");
  const auto db = store::RunDb::open(folder / "a.db", store::OpenMode::kReadOnly);
  CHECK(cli::find_named_run(db, {folder / "a.db", ""}) == last);
  CHECK(cli::find_named_run(db, {folder / "a.db", first}) == first);
}

TEST_CASE("where a database holds several runs, it is said which one is taken", "[cli]") {
  const TemporaryDirectory folder;
  const std::string database = (folder / "a.db").string();
  const auto said = [&](const std::string& run) {
    return harness(folder / "log", {"runs", "show", run}).err;
  };
  const auto first = add_run(database, "first");
  CHECK(said(database).find("latest") == std::string::npos);
  const auto last = add_run(database, "last");
  CHECK(said(database).find("note: " + database + ": " + last +
                            " is the latest of 2 runs there; `olmo-harness runs list` shows all") !=
        std::string::npos);
  CHECK(said(database + ":" + first).find("latest") == std::string::npos);
}

}  // namespace olmo::test
