#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json.h"

namespace olmo::eval {

/// Parses a JSON object from a file that may be hostile: at most 32 levels deep, so that copying
/// and writing it cannot exhaust the stack. A member `left_out` of the object is dropped. Throws
/// Error(kind) "WHERE: …".
Json parse_bounded(std::string_view text, const std::string& where, ErrorKind kind,
                   std::string_view left_out = {});

}  // namespace olmo::eval
