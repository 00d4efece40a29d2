#include "store/runs/audit_records.h"

#include <algorithm>
#include <iterator>

#include "store/database/value_hash.h"
#include "store/runs/run_facts.h"
#include "store/runs/run_tables.h"

namespace olmo::store {
namespace {

constexpr char kAuditEvent[] = "audit";

/// By which its event names it: over its columns, but those that a later version added.
std::string name_of(const AuditRecord& audit) {
  Sha256 hash;
  for (const auto& column : kAudits.columns)
    if (column.since <= kAudits.since) add_to(hash, column.get(audit));
  return name_by_hash(hash.finish().hex());
}

}  // namespace

std::int64_t record_audit(RecordDatabase& db, const std::string& run_id, AuditRecord audit) {
  audit.created_utc = utc_now();
  db.write_after([&]() -> std::vector<RecordDatabase::Row> {
    audit.audit = std::ssize(read_audits(db, run_id)) + 1;
    return {row_for<kAudits>(run_id, audit),
            event_now(db, run_id, kAuditEvent,
                      "of steps " + std::to_string(audit.first_step) + " to " +
                          std::to_string(audit.last_step) + ": " + audit.verdict + ", " +
                          name_of(audit))};
  });
  return audit.audit;
}

std::vector<AuditRecord> read_audits(const RecordDatabase& db, const std::string& run_id) {
  return read_all(db, kAudits, "WHERE run_id = ? ORDER BY audit", {run_id});
}

std::string altered_audit(const RecordDatabase& db, const std::string& run_id,
                          std::span<const AuditRecord> audits) {
  std::vector<std::string> names;
  std::ranges::transform(audits, std::back_inserter(names), name_of);
  const auto event = event_without(db, run_id, kAuditEvent, names);
  if (!event) return "";
  return "the audit of " + event->utc + " (" + event->message +
         ") is not in the record as it was made: its row was altered or removed";
}

}  // namespace olmo::store
