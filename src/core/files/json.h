// Reading and writing JSON; what uses a value includes <nlohmann/json.hpp> itself.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "core/error.h"

namespace olmo {

using Json = nlohmann::json;

/// A JSON value as the member of a struct. The library's own type could not be one without its
/// header, which takes the compiler most of a second in each file that sees the struct.
class JsonValue {
 public:
  JsonValue();  ///< an empty object
  JsonValue(Json json);
  JsonValue(const JsonValue& other);
  JsonValue(JsonValue&& other) noexcept;
  JsonValue& operator=(JsonValue other) noexcept;
  ~JsonValue();

  [[nodiscard]] Json& operator*() noexcept { return *json_; }
  [[nodiscard]] const Json& operator*() const noexcept { return *json_; }
  [[nodiscard]] Json* operator->() noexcept { return json_.get(); }
  [[nodiscard]] const Json* operator->() const noexcept { return json_.get(); }

 private:
  std::unique_ptr<Json> json_;  // null: moved from
};

struct StrictJson {
  std::string where;  ///< what sentences begin with: a file, or a file and its line
  ErrorKind kind = ErrorKind::kInput;
  int max_depth = 64;
  std::string_view left_out = {};  ///< a member of the outermost object that is dropped
  bool is_file = false;            ///< sentences name the line after `where`
  bool is_object = false;          ///< anything else is refused
};

/// Parses JSON from outside. Refused, beside what is not JSON: a key that an object has twice (the
/// library would keep the last one), what is nested deeper than max_depth (the library recurses,
/// and the stack would end), and numbers beyond a double. Throws Error(kind) "WHERE: …".
Json parse_strict_json(std::string_view text, const StrictJson& how);

/// parse_strict_json of a file. Throws Error(kInput) "FILE:LINE: …". Comments are not accepted:
/// only configs have them (config/file.h).
Json read_json_file(const std::filesystem::path& path);

/// JSON to be read by others: valid UTF-8, whatever bytes a name or a path in it has (U+FFFD stands
/// for those that are no text). `indent` -1: on one line.
std::string json_text(const Json& json, int indent = -1);
std::string json_text(const nlohmann::ordered_json& json, int indent = -1);

/// JSON's null for a value that is not there.
template <class Result = Json, class Value>
Result or_null(const std::optional<Value>& value) {
  return value ? Result(*value) : Result(nullptr);
}

}  // namespace olmo
