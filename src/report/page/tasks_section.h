#pragma once

#include <string>

#include "report/parity.h"

namespace olmo::report::page {

std::string tasks_section(const ParityReport& report);
std::string perplexity_section(const ParityReport& report);

}  // namespace olmo::report::page
