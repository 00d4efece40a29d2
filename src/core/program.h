#pragma once

#include <optional>
#include <string>

namespace olmo {

/// Where PATH has the program `name`; a name with a slash is taken as it is. The folders of PATH
/// that are named relative to the current one (`.`, an empty entry) are passed over: what lies
/// there by chance, or by somebody's intent, is not what was meant.
std::optional<std::string> find_program(const std::string& name);

}  // namespace olmo
