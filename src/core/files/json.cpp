#include "core/files/json.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/files/input_file.h"

template class nlohmann::basic_json<>;  // see precompiled/json.h

namespace olmo {
namespace {

/// A pointer whose owner can see how far the parser has come.
class WatchedPointer {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  WatchedPointer(const char* at, const char** seen) : at_(at), seen_(seen) {}
  reference operator*() const { return *at_; }
  WatchedPointer& operator++() {
    *seen_ = ++at_;
    return *this;
  }
  friend bool operator==(const WatchedPointer& a, const WatchedPointer& b) {
    return a.at_ == b.at_;
  }

 private:
  const char* at_;
  const char** seen_;
};

/// What is wrong, without the library's name and number for it.
std::string reason(const Json::exception& error) {
  const std::string text = error.what();
  const auto end = text.find("] ");
  return end == std::string::npos ? text : text.substr(end + 2);
}

template <typename AnyJson>
std::string text_of(const AnyJson& json, int indent) {
  return json.dump(indent, ' ', false, AnyJson::error_handler_t::replace);
}

}  // namespace

JsonValue::JsonValue() : JsonValue(Json::object()) {}
JsonValue::JsonValue(Json json) : json_(std::make_unique<Json>(std::move(json))) {}
JsonValue::JsonValue(const JsonValue& other) : JsonValue(*other) {}
JsonValue::JsonValue(JsonValue&& other) noexcept = default;
JsonValue& JsonValue::operator=(JsonValue other) noexcept {
  json_ = std::move(other.json_);
  return *this;
}
JsonValue::~JsonValue() = default;

Json parse_strict_json(std::string_view text, const StrictJson& how) {
  const char* seen = text.data();
  const auto fail = [&](const std::string& what) {
    const auto line = 1 + std::count(text.data(), seen, '\n');
    throw Error(how.kind,
                how.where + (how.is_file ? ":" + std::to_string(line) : "") + ": " + what);
  };
  // The library takes a zero byte for the end of the text.
  if (const auto zero = text.find('\0'); zero != std::string_view::npos) {
    seen = text.data() + zero;
    fail("is not valid JSON (it holds a zero byte)");
  }
  std::vector<std::unordered_set<std::string>> keys;  // of the open object of each depth
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > how.max_depth) fail("is nested too deep");
    const auto level = static_cast<std::size_t>(depth);
    if (event == Json::parse_event_t::object_start) {
      keys.resize(std::max(keys.size(), level + 2));
      keys[level + 1].clear();
    }
    if (event != Json::parse_event_t::key) return true;
    const auto& key = value.get_ref<const std::string&>();
    if (!keys.at(level).insert(key).second)
      fail("has the key " + Json(key).dump(-1, ' ', true) + " twice in one object");
    return depth != 1 || how.left_out.empty() || key != how.left_out;
  };
  try {
    Json json = Json::parse(WatchedPointer(text.data(), &seen),
                            WatchedPointer(text.data() + text.size(), &seen), watch);
    if (how.is_object && !json.is_object()) fail("is not a JSON object");
    return json;
  } catch (const Json::exception& error) {
    fail("is not valid JSON (" + reason(error) + ")");
  }
  return {};
}

Json read_json_file(const std::filesystem::path& path) {
  return parse_strict_json(read_file(path), {.where = path.string(), .is_file = true});
}

std::string json_text(const Json& json, int indent) { return text_of(json, indent); }
std::string json_text(const nlohmann::ordered_json& json, int indent) {
  return text_of(json, indent);
}

}  // namespace olmo
