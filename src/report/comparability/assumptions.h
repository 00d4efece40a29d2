// What `--assume KEY=VALUE` says, and the address of a served report.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace olmo::report {

/// KEY and VALUE of each. Throws Error(kUsage) for a text that is not KEY=VALUE.
std::map<std::string, std::string> parse_assumptions(const std::vector<std::string>& texts);

}  // namespace olmo::report
