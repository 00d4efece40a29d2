#include "store/runs/declarations.h"

#include "store/runs/run_db.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using namespace olmo;
using namespace olmo::store;

namespace {

/// A database with one run, `x`.
struct File {
  test::TemporaryDirectory folder;
  RecordDatabase records{folder / "run.db", OpenMode::kCreate};

  File() {
    records.write(
        {{"INSERT INTO runs VALUES ('x', 'x', '2026', 'finished', '{}', '', 1, 1, 1, 2)", {}}});
  }
  [[nodiscard]] std::vector<std::string> altered() const {
    return altered_declarations(records, "x", read_declarations(records, "x"));
  }
  void alter(const char* sql) { records.write({{sql, {}}}); }
};

}  // namespace

TEST_CASE("a declaration holds who, when, the margins and the record of that time", "[store]") {
  File file;
  const auto first = declare(file.records, "x", "ada", "loss=0.01");
  const auto second = declare(file.records, "x", "ben", "macro=0.5");
  const auto read = read_declarations(file.records, "x");
  REQUIRE(read.size() == 2);
  CHECK(read[0].who == "ada");
  CHECK(read[0].margins == "loss=0.01");
  CHECK(read[0].created_utc == first.created_utc);
  CHECK(read[0].record == "0");
  CHECK(read[1].declaration == 2);
  CHECK(read[1].sha256 == second.sha256);
  CHECK(read[0].sha256 != read[1].sha256);
  CHECK(file.altered().empty());
}

TEST_CASE("a declaration that was altered or removed is found", "[store]") {
  File file;
  declare(file.records, "x", "ada", "loss=0.01");
  declare(file.records, "x", "ben", "macro=0.5");
  SECTION("its margin") {
    file.alter("UPDATE declarations SET margins = 'loss=1' WHERE declaration = 1");
  }
  SECTION("its time") {
    file.alter("UPDATE declarations SET created_utc = '2020' WHERE declaration = 2");
  }
  SECTION("the one before") { file.alter("DELETE FROM declarations WHERE declaration = 1"); }
  SECTION("the one before, and its number taken") {
    file.alter("DELETE FROM declarations WHERE declaration = 1");
    file.alter("UPDATE declarations SET declaration = 1");
  }
  SECTION("the last one") { file.alter("DELETE FROM declarations WHERE declaration = 2"); }
  SECTION("the only one of which there is an event") {
    file.alter("DELETE FROM declarations");
    file.alter("DELETE FROM events WHERE message LIKE 'loss%'");
  }
  CHECK(file.altered().size() == 1);
}

TEST_CASE("no declaration follows one that was altered", "[store]") {
  File file;
  declare(file.records, "x", "ada", "loss=0.01");
  file.alter("UPDATE declarations SET margins = 'loss=1'");
  CHECK_THROWS_AS(declare(file.records, "x", "ben", "macro=0.5"), Error);
  CHECK(read_declarations(file.records, "x").size() == 1);
}

TEST_CASE("declarations of a time when they had no events are sound", "[store]") {
  File file;
  declare(file.records, "x", "ada", "loss=0.01");
  file.alter("DELETE FROM events");
  declare(file.records, "x", "ben", "macro=0.5");
  CHECK(file.altered().empty());
}
