#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace olmo {

/// The name in `known` with the smallest edit distance to `name`, if one is close enough to be
/// meant.
std::optional<std::string> nearest(std::string_view name, const std::vector<std::string>& known);

}  // namespace olmo
