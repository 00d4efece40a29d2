// The man page, made from what the commands have declared and from the tables of
// cli/surroundings.h.
#pragma once

#include <string>

#include "cli/interface/interface.h"
#include "core/process/process.h"

namespace olmo::cli {

/// olmo-harness(1) in the language of man(7), which groff and mandoc read. Its date is that of the
/// revision, so that equal programs print equal pages.
std::string man_page(const CommandFacts& program, const BuildInfo& build);

}  // namespace olmo::cli
