// What `audit` shows, to people and to programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/op_trace.h"
#include "core/policy.h"
#include "train/audit/audit.h"

namespace olmo::cli {

/// The traces of two runs, compared.
struct TraceComparison {
  std::vector<std::int64_t> steps;            ///< that both have, up to the first that differs
  std::optional<TraceDifference> difference;  ///< in the last of `steps`
};

std::string audit_header(const train::RecordedSteps& recorded, const Policy& policy);
std::string to_text(const train::StretchResult& stretch);
std::string audit_footer(const train::AuditResult& result, const train::RecordedSteps& recorded);
Json to_json(const train::AuditResult& result, const train::RecordedSteps& recorded,
             const Policy& policy);

std::string to_text(const TraceComparison& comparison);
Json to_json(const TraceComparison& comparison);

}  // namespace olmo::cli
