#pragma once

#include <span>
#include <string>

#include "report/side.h"

namespace olmo::report::page {

std::string efficiency_section(std::span<const NamedSide> sides);

}  // namespace olmo::report::page
