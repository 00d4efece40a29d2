// Traces: what the operations of a step gave (columns: store/database/schema.h). A seal over each,
// so that none of it can be altered alone; a trace of a time before seals has none.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/trace/op_digest.h"
#include "store/database/record_database.h"

namespace olmo::store {

/// Who traced a step: an attempt of the training, or an audit.
struct TraceSource {
  std::int64_t attempt = 0;
  std::int64_t audit = 0;
};

/// Replaces what `source` had recorded of the step, and seals it.
void record_trace(RecordDatabase& db, const std::string& run_id, const TraceSource& source,
                  std::int64_t step, std::span<const OpDigest> trace);

/// The step's trace: the surviving attempt's, else the latest audit's; empty if there is none.
/// Throws Error(kDamaged) if it is not as it was recorded, or holds what is no digest.
std::vector<OpDigest> read_trace(const RecordDatabase& db, const std::string& run_id,
                                 std::int64_t step);

/// Steps that an attempt of the training traced, left ones too, ascending.
std::vector<std::int64_t> steps_traced_by(const RecordDatabase& db, const std::string& run_id,
                                          std::int64_t attempt);

/// Steps that have a trace, ascending.
std::vector<std::int64_t> traced_steps(const RecordDatabase& db, const std::string& run_id);

/// Steps of which a trace, be it of a step that the run has left or of an audit, is not as it was
/// recorded: a row, or the seal, was altered, added or removed.
std::set<std::int64_t> altered_traces(const RecordDatabase& db, const std::string& run_id);

}  // namespace olmo::store
