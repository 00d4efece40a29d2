// A report on one run as files.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "report/run_report.h"

namespace olmo::report {

std::string run_html(const RunReport& report);
nlohmann::ordered_json run_json(const RunReport& report);
std::string run_markdown(const RunReport& report);

}  // namespace olmo::report
