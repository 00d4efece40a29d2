#pragma once

#include <span>
#include <string>

#include "report/parity.h"

namespace olmo::report::page {

std::string noise_section(const ParityReport& report);
std::string trajectory_section(const ParityReport& report);

// Of one or of two sides.
std::string loss_charts(std::span<const NamedSide> sides, std::span<const Mark> marks);
std::string throughput_chart(std::span<const NamedSide> sides);
/// "step 1,200", or the tokens where the run tells no steps.
std::string place_of(const Mark& mark);
std::string events_table(std::span<const Mark> marks);

}  // namespace olmo::report::page
