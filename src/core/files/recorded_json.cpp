#include "core/files/recorded_json.h"

#include <nlohmann/json.hpp>

#include "core/error.h"

namespace olmo {

template <class AnyJson>
AnyJson recorded_json(std::string_view text) {
  constexpr int kDeepest = 64;
  bool too_deep = false;
  using Event = typename AnyJson::parse_event_t;
  const auto watch = [&](int depth, Event event, AnyJson&) {
    const bool starts = event == Event::object_start || event == Event::array_start;
    too_deep = too_deep || (starts && depth >= kDeepest);
    return !too_deep;  // what is deeper is not even kept
  };
  AnyJson json = AnyJson::parse(text, watch, /*allow_exceptions=*/false);
  return too_deep ? AnyJson(AnyJson::value_t::discarded) : json;
}

template nlohmann::json recorded_json(std::string_view text);
template nlohmann::ordered_json recorded_json(std::string_view text);

nlohmann::json recorded_object(std::string_view text, const std::string& where) {
  auto json = recorded_json(text);
  if (!json.is_object())
    throw Error(ErrorKind::kDamaged,
                where + ": is no JSON object, or one that is nested too deep: it is damaged");
  return json;
}

void for_each_leaf(const nlohmann::json& json, const std::string& path,
                   const std::function<void(const std::string&, const nlohmann::json&)>& visit) {
  if (!json.is_object() || json.empty()) {
    visit(path, json);
    return;
  }
  for (const auto& [key, value] : json.items())
    for_each_leaf(value, path.empty() ? key : path + "." + key, visit);
}

}  // namespace olmo
