#include "store/run_export.h"

#include <algorithm>
#include <array>

#include "core/error.h"

namespace olmo::store {
namespace {

struct ExportedTable {
  const char* name;
  const char* order;
};

constexpr std::array<ExportedTable, 14> kTables = {{
    {"steps", "step"},
    {"imported_steps", "2"},
    {"energy", "attempt, source, device"},
    {"power_samples", "attempt, source, device, seconds"},
    {"attempts", "attempt"},
    {"inputs", "kind, path"},
    {"metrics", "step, attempt, name"},
    {"state_seals", "step, attempt"},
    {"op_traces", "step, attempt, audit, ordinal"},
    {"audits", "audit"},
    {"state_hashes", "step, attempt, part, name"},
    {"checkpoints", "step, attempt"},
    {"events", "event_id"},
    {"runs", "run_id"},
}};

}  // namespace

std::vector<std::string> tables_of_runs() {
  std::vector<std::string> names;
  for (const auto& table : kTables) names.emplace_back(table.name);
  return names;
}

void for_each_row(const RunDb& db, const std::string& table, const std::string& run_id,
                  bool all_attempts, const RecordDatabase::OnRow& on_row) {
  const auto* found = std::find_if(kTables.begin(), kTables.end(),
                                   [&](const auto& each) { return table == each.name; });
  OLMO_CHECK(found != kTables.end());
  bool is_there = false;
  db.records().query("SELECT 1 FROM sqlite_schema WHERE name = ?", {table},
                     [&](const auto&, const auto&) { is_there = true; });
  if (!is_there) return;
  std::string from = table, order = found->order;
  if (table == "steps") {
    if (all_attempts)
      order = "attempt, step";
    else
      from = "surviving_steps";
  }
  db.records().query("SELECT * FROM " + from + " WHERE run_id = ? ORDER BY " + order, {run_id},
                     on_row);
}

void for_each_overview(const RunDb& db, const std::string& run_id,
                       const RecordDatabase::OnRow& on_row) {
  db.records().query(
      "SELECT o.* FROM runs r JOIN run_overview o USING (run_id) WHERE ?1 = '' OR run_id = ?1 "
      "ORDER BY r.rowid",
      {run_id}, on_row);
}

void for_each_metric(const RunDb& db, const std::string& run_id,
                     const RecordDatabase::OnRow& on_row) {
  db.records().query(
      "SELECT name, count(*) AS points, max(step) AS last_step, value AS last FROM metrics WHERE "
      "run_id = ? GROUP BY name ORDER BY name",
      {run_id}, on_row);
}

}  // namespace olmo::store
