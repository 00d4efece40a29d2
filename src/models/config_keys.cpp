#include "models/config_keys.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/error.h"

namespace olmo::models {
namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 40;

/// The library compares numbers from 2^63 on as negative ones.
bool is_in_range(const Json& integer) {
  if (integer.is_number_unsigned()) return integer.get<std::uint64_t>() <= kLargest;
  const auto value = integer.get<std::int64_t>();
  return value >= -kLargest && value <= kLargest;
}

std::string shown(const Json& value) {
  const auto text = json_text(value);
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

}  // namespace

ConfigKeys::ConfigKeys(const Json& json, std::string where)
    : json_(json), where_(std::move(where)) {
  if (!json_.is_object()) throw Error(ErrorKind::kInput, where_ + ": is not a JSON object");
}

void ConfigKeys::fail(const std::string& key, const std::string& what) const {
  throw Error(ErrorKind::kInput, where_ + ": `" + key + "` " + what);
}

const Json* ConfigKeys::find(const std::string& key) const {
  const auto found = json_.find(key);
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

bool ConfigKeys::contains(const std::string& key) const { return json_.contains(key); }

template <class T>
std::optional<T> ConfigKeys::read(const std::string& key, bool (Json::*is)() const noexcept,
                                  const char* expected) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!(value->*is)()) fail(key, std::string("expects ") + expected + ", got " + shown(*value));
  return value->get<T>();
}

std::optional<std::int64_t> ConfigKeys::integer(const std::string& key) const {
  const Json* value = find(key);
  if (value != nullptr && value->is_number_integer() && !is_in_range(*value))
    fail(key, "must lie in -" + std::to_string(kLargest) + ".." + std::to_string(kLargest) +
                  ", got " + shown(*value));
  return read<std::int64_t>(key, &Json::is_number_integer, "an integer");
}

std::optional<double> ConfigKeys::number(const std::string& key) const {
  return read<double>(key, &Json::is_number, "a number");
}

bool ConfigKeys::boolean(const std::string& key, bool fallback) const {
  return read<bool>(key, &Json::is_boolean, "true or false").value_or(fallback);
}

std::string ConfigKeys::text(const std::string& key, const std::string& fallback) const {
  return read<std::string>(key, &Json::is_string, "text").value_or(fallback);
}

std::optional<ConfigKeys> ConfigKeys::object(const std::string& key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  return ConfigKeys(*value, where_ + ": `" + key + "`");
}

std::int64_t ConfigKeys::required_integer(const std::string& key) const {
  const auto value = integer(key);
  if (!value) fail(key, "is missing: expected an integer");
  return *value;
}

ConfigKeys ConfigKeys::required_object(const std::string& key) const {
  if (const auto value = object(key)) return *value;
  fail(key, "is missing: expected an object");
}

void ConfigKeys::only(const std::string& key, const Json& expected) const {
  const Json* value = find(key);
  if (value == nullptr || *value == expected) return;
  fail(key, "is " + shown(*value) + ", which is not supported: expected " +
                (expected.is_null() ? "" : expected.dump() + " or ") + "null");
}

void ConfigKeys::only_keys(const std::vector<std::string_view>& known) const {
  for (const auto& [key, value] : json_.items()) {
    const bool is_off = value.is_null() || value == false;
    if (is_off || std::ranges::find(known, key) != known.end()) continue;
    fail(key, "is " + shown(value) + ", and is not known here");
  }
}

}  // namespace olmo::models
