#pragma once

#include <span>
#include <string>

#include "report/side.h"

namespace olmo::report::page {

/// What each side was made of and with: inputs, builds, machines, attempts.
std::string provenance_section(std::span<const NamedSide> sides);
/// The command that makes the page again.
std::string command_section(const std::string& command, const std::string& version,
                            std::span<const NamedSide> sides);

}  // namespace olmo::report::page
