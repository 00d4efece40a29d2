#pragma once

#include "store/recorded_run.h"

namespace olmo::audit {

/// What the record says that a training computed: what an audit compares with.
struct AuditedRun : store::RecordedRun {
  std::map<std::int64_t, store::StepRecord> rows;  ///< of the surviving line, by step
  bool fast = false;                               ///< some attempt was not `portable`
  double seconds = 0;                              ///< of all steps

  [[nodiscard]] std::int64_t first_step() const { return rows.empty() ? 0 : rows.begin()->first; }
  [[nodiscard]] std::int64_t last_step() const { return rows.empty() ? 0 : rows.rbegin()->first; }
};

/// Throws Error(kDamaged) for a database whose pages are not sound, Error(kUsage) for a run without
/// steps of ours.
AuditedRun read_audited_run(const store::RecordDatabase& records, const std::string& run_id);

}  // namespace olmo::audit
