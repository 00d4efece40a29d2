#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/cost/efficiency.h"
#include "report/evaluations/evaluation_scores.h"
#include "report/record/side.h"
#include "report/training/identity.h"
#include "report/training/trajectory.h"

namespace olmo::report {

/// All that is shown of one run.
struct RunReport {
  Side side;
  std::optional<Efficiency> efficiency;
  std::vector<Mark> marks;
  std::string command, version;
  std::vector<EvaluationScores> evaluations{};  ///< all of the run, or the one named
  std::vector<AuditedStretch> audits{};         ///< oldest first
};

/// Reads one run, or an evaluation without one, with its latest evaluation, the scores of all, and
/// its audits. `cluster` is a file; empty: none. Throws Error(kUsage) for a name that names
/// nothing, Error(kDamaged) for a database that cannot be read.
RunReport report_run(const std::string& run, const std::string& cluster,
                     store::OpenMode reading = store::OpenMode::kReadOnly);

/// What is wrong with its records, evaluations of all steps included; one sentence each.
std::vector<std::string> damage_of(const RunReport& report);

}  // namespace olmo::report
