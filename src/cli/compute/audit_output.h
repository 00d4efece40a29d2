// What `audit` shows, to people and to programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "audit/audit.h"
#include "core/compute/policy.h"
#include "core/files/json.h"
#include "core/trace/op_digest.h"

namespace olmo::cli::compute {

/// The traces of two runs, compared.
struct TraceComparison {
  std::vector<std::int64_t> steps;            ///< that both have, up to the first that differs
  std::optional<TraceDifference> difference;  ///< in the last of `steps`
};

std::string audit_header(const audit::AuditedRun& recorded, const Policy& policy);
std::string to_text(const audit::StretchResult& stretch);
std::string audit_footer(const audit::AuditResult& result, const audit::AuditedRun& recorded);
Json to_json(const audit::AuditResult& result, const audit::AuditedRun& recorded,
             const Policy& policy);

std::string to_text(const TraceComparison& comparison);
Json to_json(const TraceComparison& comparison);

}  // namespace olmo::cli::compute
