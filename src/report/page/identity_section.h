#pragma once

#include <string>

#include "report/identity.h"
#include "report/parity.h"

namespace olmo::report::page {

/// Where the runs part, and what audits measured.
std::string identity_section(const ParityReport& report);
/// The same as Markdown.
std::string identity_markdown(const Identity& identity);

/// "the same bits", or what differs.
std::string audit_result(const AuditedStretch& audit);

}  // namespace olmo::report::page
