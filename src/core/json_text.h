#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace olmo {

/// JSON to be read by others: valid UTF-8, whatever bytes a name or a path in it has (U+FFFD stands
/// for those that are no text). `indent` -1: on one line.
template <typename AnyJson>
std::string json_text(const AnyJson& json, int indent = -1) {
  return json.dump(indent, ' ', false, AnyJson::error_handler_t::replace);
}

}  // namespace olmo
