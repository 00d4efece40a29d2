// Times as records write them.
#pragma once

#include <chrono>
#include <string>

namespace olmo {

/// `2026-01-31T23:59:59.123Z`, with one to six digits of a second, which are cut and not rounded.
std::string utc_text(std::chrono::system_clock::time_point at, int digits = 3);

}  // namespace olmo
