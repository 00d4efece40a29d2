#pragma once

#include <string>

#include "report/parity.h"

namespace olmo::report::page {

std::string verdict_section(const ParityReport& report);
/// The settings that differ, by what they mean for the comparison.
std::string gate_section(const ParityReport& report);

}  // namespace olmo::report::page
