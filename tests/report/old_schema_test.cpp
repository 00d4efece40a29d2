// Databases of every schema version that ever was, with a row in each of their tables.
#include <map>

#include "report/record/recorded_evaluation.h"
#include "report/record/side.h"
#include "store/database/schema.h"
#include "store/evaluations/evaluation_db.h"
#include "store/plain_records.h"
#include "store/runs/recorded_run.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using namespace olmo;
using namespace olmo::report;
using olmo::test::TemporaryDirectory;

namespace {

/// A value that fits the column whatever the table: the same key everywhere, so that rows refer to
/// each other.
std::string value_for(const std::string& column, const std::string& type) {
  static const std::map<std::string, std::string> kKnown = {
      {"status", "'finished'"}, {"verdict", "'identical'"}, {"kind", "'rank_classification'"},
      {"config", "'{}'"},       {"settings", "'{}'"},       {"policy", "'{}'"},
      {"build", "'{}'"},        {"environment", "'{}'"},    {"start_step", "0"},
      {"deleted_utc", "NULL"},  {"first_step", "1"},        {"last_step", "1"}};
  const auto known = kKnown.find(column);
  if (known != kKnown.end()) return known->second;
  if (column.ends_with("_hash") || column.ends_with("sha256") || column.ends_with("digest"))
    return "'" + std::string(64, 'a') + "'";
  if (column.ends_with("_utc")) return "'2026-01-01T00:00:00.000Z'";
  if (type == "INTEGER") return "1";
  if (type == "REAL") return "0.5";
  return "'x'";
}

std::vector<std::string> texts(const store::Database& db, const std::string& sql) {
  std::vector<std::string> found;
  store::Statement statement = db.prepare(sql);
  while (statement.step()) found.push_back(statement.text(0));
  return found;
}

std::vector<std::string> tables_of(const store::Database& db) {
  return texts(db,
               "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'");
}

/// Every value of every table, in order.
std::map<std::string, std::vector<std::string>> rows_of(const std::filesystem::path& path,
                                                        const std::vector<std::string>& tables) {
  const store::Database db(path, store::OpenMode::kReadOnly);
  std::map<std::string, std::vector<std::string>> rows;
  for (const auto& table : tables) {
    for (const auto& column :
         texts(db, "SELECT name FROM pragma_table_info('" + table + "') ORDER BY cid"))
      rows[table + "." + column] =
          texts(db, "SELECT quote(" + column + ") FROM " + table + " ORDER BY 1");
  }
  return rows;
}

void make_database(const std::filesystem::path& path, int version) {
  store::Database db(path, store::OpenMode::kCreate);
  for (int i = 0; i < version; ++i) db.execute(store::kMigrations[i]);
  db.execute("PRAGMA application_id = " + std::to_string(store::kApplicationId) +
             "; PRAGMA user_version = " + std::to_string(version) + "; PRAGMA foreign_keys = OFF");
  for (const auto& table : tables_of(db)) {
    std::string values;
    store::Statement columns =
        db.prepare("SELECT name, type FROM pragma_table_info('" + table + "') ORDER BY cid");
    while (columns.step())
      values += (values.empty() ? "" : ", ") + value_for(columns.text(0), columns.text(1));
    db.execute("INSERT INTO " + table + " VALUES (" + values + ")");
  }
}

}  // namespace

TEST_CASE("a database of every older schema is read as it is, by the report too", "[report]") {
  for (int version = 1; version <= store::kSchemaVersion; ++version) {
    INFO("schema version " << version);
    const TemporaryDirectory folder;
    const auto path = folder / "run.db";
    make_database(path, version);
    const SideRecords opened = open_records(store::parse_run_name(path.string()));
    CHECK(opened.database().schema_version() == version);
    CHECK(opened.run_id == "x");
    const auto run = read_run(opened.database(), "x");
    CHECK(run.steps.size() == 1);
    CHECK(opened.evaluations.size() == (version >= 2 ? 1 : 0));
  }
}

TEST_CASE(
    "a database of every older schema is brought up to date when it is written, with all its rows",
    "[report]") {
  for (int version = 1; version <= store::kSchemaVersion; ++version) {
    INFO("schema version " << version);
    const TemporaryDirectory folder;
    const auto path = folder / "run.db";
    make_database(path, version);
    const auto tables = tables_of(store::Database(path, store::OpenMode::kReadOnly));
    const auto before = rows_of(path, tables);
    {
      auto db = store::RunDb::open(path, store::OpenMode::kReadWrite);
      CHECK(db.records().schema_version() == store::kSchemaVersion);
      db.resume_run("x", test::plain_attempt(1), 1);
      db.records().check_pages();
    }
    auto after = rows_of(path, tables);
    for (const auto& [column, rows] : before) {
      INFO(column);
      REQUIRE_FALSE(after[column].empty());
      if (column.starts_with("attempts.") || column == "runs.status") continue;  // the new attempt
      CHECK(after[column] == rows);
    }
    const SideRecords opened = open_records(store::parse_run_name(path.string()));
    CHECK(read_run(opened.database(), "x").steps.size() == 1);
  }
}
