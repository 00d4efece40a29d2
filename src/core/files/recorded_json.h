// JSON as a record holds it. Whoever made the record may have written anything there.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace olmo {

/// The value; `is_discarded()` for what is not JSON, or is nested deeper than 64 levels: the
/// library recurses where it writes or compares a value, and the stack would end. `AnyJson`:
/// nlohmann::json or nlohmann::ordered_json.
template <class AnyJson = nlohmann::json>
AnyJson recorded_json(std::string_view text);

/// The same of what must be an object. Throws Error(kDamaged) that begins with `where` if it is
/// none.
nlohmann::json recorded_object(std::string_view text, const std::string& where);

/// Visits all values that are no objects with members, each with its place: `model.d_model`, 64.
/// Places begin with `path`.
void for_each_leaf(
    const nlohmann::json& json, const std::string& path,
    const std::function<void(const std::string& place, const nlohmann::json& value)>& visit);

}  // namespace olmo
