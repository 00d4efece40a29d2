#include "store/audit_records.h"

#include "core/error.h"

namespace olmo::store {
namespace {

/// A database that is read keeps its older schema.
bool has_audits(const RecordDatabase& db) { return db.schema_version() >= 4; }

}  // namespace

std::int64_t record_audit(RecordDatabase& db, const std::string& run_id, const AuditRecord& audit) {
  db.flush();
  Transaction transaction(db.connection());
  Statement last =
      db.connection().prepare("SELECT coalesce(max(audit), 0) FROM audits WHERE run_id = ?");
  last.bind_all({run_id}).step();
  const std::int64_t number = last.integer(0) + 1;
  db.connection()
      .prepare("INSERT INTO audits VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
      .bind_all({run_id, number, utc_now(), audit.command_line, audit.policy, audit.build,
                 audit.environment, audit.started_from, audit.first_step, audit.last_step,
                 audit.verdict, optional_value(audit.difference_step), audit.difference,
                 audit.operation, optional_value(audit.ce_loss_distance),
                 optional_value(audit.grad_norm_distance)})
      .step();
  transaction.commit();
  return number;
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
  std::vector<AuditRecord> audits;
  if (!has_audits(db)) return audits;
  Statement row = db.connection().prepare(
      "SELECT created_utc, command_line, policy, build, environment, started_from, first_step, "
      "last_step, verdict, difference_step, difference, operation, ce_loss_distance, "
      "grad_norm_distance FROM audits WHERE run_id = ? ORDER BY audit");
  row.bind_all({run_id});
  while (row.step()) {
    AuditRecord audit{.created_utc = row.text(0),
                      .command_line = row.text(1),
                      .policy = row.text(2),
                      .build = row.text(3),
                      .environment = row.text(4),
                      .started_from = row.text(5),
                      .first_step = row.integer(6),
                      .last_step = row.integer(7),
                      .verdict = row.text(8),
                      .difference_step = {},
                      .difference = row.text(10),
                      .operation = row.text(11),
                      .ce_loss_distance = row.optional_real(12),
                      .grad_norm_distance = row.optional_real(13)};
    if (!std::holds_alternative<std::monostate>(row.column(9)))
      audit.difference_step = row.integer(9);
    audits.push_back(std::move(audit));
  }
  return audits;
}

std::vector<OpDigest> read_trace(const RecordDatabase& db, const std::string& run_id,
                                 std::int64_t step) {
  std::vector<OpDigest> trace;
  if (!has_audits(db)) return trace;
  // An attempt that started before the step has replaced the traces of earlier ones; where the
  // training has none, the latest audit's stands for it.
  Statement row = db.connection().prepare(
      "SELECT operation, sha256 FROM op_traces t WHERE run_id = ?1 AND step = ?2 AND (attempt, "
      "audit) = (SELECT attempt, audit FROM op_traces WHERE run_id = ?1 AND step = ?2 ORDER BY "
      "attempt DESC, audit DESC LIMIT 1) ORDER BY ordinal");
  row.bind_all({run_id, step});
  while (row.step()) {
    try {
      trace.push_back({row.text(0), Digest::from_hex(row.text(1))});
    } catch (const Error&) {
      throw Error(ErrorKind::kDamaged, db.path().string() + ": the trace of step " +
                                           std::to_string(step) + " holds no SHA-256 of " +
                                           row.text(0) + ", got '" + row.text(1) + "'");
    }
  }
  return trace;
}

std::vector<std::int64_t> traced_steps(const RecordDatabase& db, const std::string& run_id) {
  std::vector<std::int64_t> steps;
  if (!has_audits(db)) return steps;
  Statement row =
      db.connection().prepare("SELECT DISTINCT step FROM op_traces WHERE run_id = ? ORDER BY step");
  row.bind_all({run_id});
  while (row.step()) steps.push_back(row.integer(0));
  return steps;
}

}  // namespace olmo::store
