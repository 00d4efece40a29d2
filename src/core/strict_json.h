#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "core/error.h"

namespace olmo {

struct StrictJson {
  std::string where;  ///< what sentences begin with: a file, or a file and its line
  ErrorKind kind = ErrorKind::kInput;
  int max_depth = 64;
  std::string_view left_out = {};  ///< a member of the outermost object that is dropped
  bool is_file = false;            ///< sentences name the line after `where`
};

/// Parses JSON from outside. Refused, beside what is not JSON: a key that an object has twice (the
/// library would keep the last one), what is nested deeper than max_depth (it would recurse), and
/// numbers beyond a double. Throws Error(kind) "WHERE: …".
nlohmann::json parse_strict_json(std::string_view text, const StrictJson& how);

}  // namespace olmo
