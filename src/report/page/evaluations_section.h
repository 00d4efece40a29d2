// What the checkpoints of one run scored, and what its audits found.
#pragma once

#include <string>

#include "report/run_report.h"

namespace olmo::report::page {

std::string scores_section(const RunReport& report);
std::string scores_markdown(const RunReport& report);
std::string audits_section(const RunReport& report);
std::string audits_markdown(const RunReport& report);

}  // namespace olmo::report::page
