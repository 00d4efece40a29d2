#include "audit/audited_run.h"

#include <limits>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json.h"

namespace olmo::audit {

AuditedRun read_audited_run(const store::RecordDatabase& records, const std::string& run_id) {
  records.check_pages();
  const std::string where = records.path().string() + ": the run " + run_id;
  AuditedRun run;
  static_cast<store::RecordedRun&>(run) = store::read_run(records, run_id);
  if (run.imported) {
    throw Error(ErrorKind::kUsage, where +
                                       " was imported from a log: there is nothing to compute "
                                       "again, expected a run of `train`");
  }
  run.rows = store::read_steps(records, run_id, 0, std::numeric_limits<std::int64_t>::max());
  if (run.attempts.empty())
    throw Error(ErrorKind::kDamaged, where + " has no attempt: its rows were removed");
  if (run.rows.empty())
    throw Error(ErrorKind::kUsage, where + " has recorded no step yet: there is nothing to audit");
  for (const auto& [step, row] : run.rows) run.seconds += row.seconds;
  for (const auto& attempt : run.attempts) {
    const Json policy = Json::parse(attempt.policy, nullptr, /*allow_exceptions=*/false);
    if (!policy.is_object() || policy.value("numerics", Json()) != "portable") run.fast = true;
  }
  return run;
}

}  // namespace olmo::audit
