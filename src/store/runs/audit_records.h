// Audits (columns: store/database/schema.h).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/database/record_database.h"

namespace olmo::store {

/// A stretch of a run that was trained again and compared with the record.
struct AuditRecord {
  std::string created_utc;
  std::string command_line;
  std::string policy;       ///< JSON text, of the auditor
  std::string build;        ///< JSON text
  std::string environment;  ///< JSON text
  std::string started_from;
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
  std::string verdict;  ///< identical, within_envelope or different
  std::optional<std::int64_t> difference_step;
  std::string difference;
  std::string operation;
  std::optional<double> ce_loss_distance;
  std::optional<double> grad_norm_distance;
  std::int64_t audit = 0;  ///< its number, from 1
};

/// Makes the audit durable, with an event of it, and returns its number; this and `created_utc` are
/// set here.
std::int64_t record_audit(RecordDatabase& db, const std::string& run_id, AuditRecord audit);

/// Oldest first.
std::vector<AuditRecord> read_audits(const RecordDatabase& db, const std::string& run_id);

/// What was altered or removed of audits that have an event; one sentence without its full stop, or
/// none.
std::string altered_audit(const RecordDatabase& db, const std::string& run_id,
                          std::span<const AuditRecord> audits);

}  // namespace olmo::store
