#pragma once

#include <optional>
#include <string>

namespace olmo::report {

/// Seconds since 1970 of `2026-01-31T23:59:59.123Z`, as records have it; nothing for other text.
std::optional<double> utc_seconds(const std::string& text);

}  // namespace olmo::report
