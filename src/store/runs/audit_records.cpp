#include "store/runs/audit_records.h"

#include <algorithm>
#include <iterator>

#include "core/error.h"
#include "store/database/value_hash.h"
#include "store/runs/run_facts.h"
#include "store/runs/run_line.h"
#include "store/runs/run_tables.h"

namespace olmo::store {
namespace {

constexpr char kEventKind[] = "audit";

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
            event_now(db, run_id, kEventKind,
                      "of steps " + std::to_string(audit.first_step) + " to " +
                          std::to_string(audit.last_step) + ": " + audit.verdict + ", " +
                          name_of(audit))};
  });
  return audit.audit;
}

void record_trace(RecordDatabase& db, const std::string& run_id, const TraceSource& source,
                  std::int64_t step, std::span<const OpDigest> trace) {
  std::vector<RecordDatabase::Row> rows;
  rows.push_back(
      {"DELETE FROM op_traces WHERE run_id = ? AND attempt = ? AND audit = ? AND step = ?",
       {run_id, source.attempt, source.audit, step}});
  for (std::size_t i = 0; i < trace.size(); ++i) {
    rows.push_back({"INSERT INTO op_traces VALUES (?, ?, ?, ?, ?, ?, ?)",
                    {run_id, source.attempt, source.audit, step, static_cast<std::int64_t>(i),
                     trace[i].operation, trace[i].digest.hex()}});
  }
  db.write(std::move(rows));
}

std::vector<AuditRecord> read_audits(const RecordDatabase& db, const std::string& run_id) {
  return read_all(db, kAudits, "WHERE run_id = ? ORDER BY audit", {run_id});
}

std::string altered_audit(const RecordDatabase& db, const std::string& run_id,
                          std::span<const AuditRecord> audits) {
  std::vector<std::string> names;
  std::ranges::transform(audits, std::back_inserter(names), name_of);
  const auto event = event_without(db, run_id, kEventKind, names);
  if (!event) return "";
  return "the audit of " + event->utc + " (" + event->message +
         ") is not in the record as it was made: its row was altered or removed";
}

namespace {

/// Traces of steps that the run has left are of another training. Audits, which compute the present
/// line, have the attempt 0.
std::string trace_is_on_line() { return "(t.attempt = 0 OR " + is_on_line("t") + ")"; }

}  // namespace

std::vector<OpDigest> read_trace(const RecordDatabase& db, const std::string& run_id,
                                 std::int64_t step) {
  std::vector<OpDigest> trace;
  if (db.schema_version() < kAudits.since) return trace;
  // Where the training has none, the latest audit's stands for it.
  db.query(
      "SELECT operation, sha256 FROM op_traces WHERE run_id = ?1 AND step = ?2 AND (attempt, "
      "audit) = (SELECT attempt, audit FROM op_traces AS t WHERE run_id = ?1 AND step = ?2 AND " +
          trace_is_on_line() + " ORDER BY attempt DESC, audit DESC LIMIT 1) ORDER BY ordinal",
      {run_id, step}, [&](const auto&, const auto& row) {
        const auto& operation = std::get<std::string>(row[0]);
        const auto& sha256 = std::get<std::string>(row[1]);
        try {
          trace.push_back({operation, Digest::from_hex(sha256)});
        } catch (const Error&) {
          throw Error(ErrorKind::kDamaged, db.path().string() + ": the trace of step " +
                                               std::to_string(step) + " holds no SHA-256 of " +
                                               operation + ", got '" + sha256 + "'");
        }
      });
  return trace;
}

namespace {

std::vector<std::int64_t> steps_of_traces(const RecordDatabase& db, const std::string& which,
                                          const std::vector<SqlValue>& parameters) {
  std::vector<std::int64_t> steps;
  if (db.schema_version() < kAudits.since) return steps;
  db.query(
      "SELECT DISTINCT step FROM op_traces AS t WHERE run_id = ? AND " + which + " ORDER BY step",
      parameters,
      [&](const auto&, const auto& row) { steps.push_back(std::get<std::int64_t>(row[0])); });
  return steps;
}

}  // namespace

std::vector<std::int64_t> steps_traced_by(const RecordDatabase& db, const std::string& run_id,
                                          std::int64_t attempt) {
  return steps_of_traces(db, "attempt = ?", {run_id, attempt});
}

std::vector<std::int64_t> traced_steps(const RecordDatabase& db, const std::string& run_id) {
  return steps_of_traces(db, trace_is_on_line(), {run_id});
}

}  // namespace olmo::store
