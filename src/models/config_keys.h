#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/json.h"

namespace olmo::models {

/// Typed access to the keys of an object in another software's config. A key that is absent or null
/// has no value. Every function throws Error(kInput) naming the file, the key, and what was
/// expected; integers beyond 2^40 are refused.
class ConfigKeys {
 public:
  /// `where`: what sentences begin with. `json` outlives this.
  ConfigKeys(const Json& json, std::string where);

  [[noreturn]] void fail(const std::string& key, const std::string& what) const;

  /// Null: no value.
  [[nodiscard]] const Json* find(const std::string& key) const;
  [[nodiscard]] bool contains(const std::string& key) const;
  [[nodiscard]] std::optional<std::int64_t> integer(const std::string& key) const;
  [[nodiscard]] std::optional<double> number(const std::string& key) const;
  [[nodiscard]] bool boolean(const std::string& key, bool fallback) const;
  [[nodiscard]] std::string text(const std::string& key, const std::string& fallback) const;
  [[nodiscard]] std::optional<ConfigKeys> object(const std::string& key) const;
  /// Refuses a key without a value.
  [[nodiscard]] std::int64_t required_integer(const std::string& key) const;
  [[nodiscard]] ConfigKeys required_object(const std::string& key) const;
  /// Refuses every value but `expected` and null.
  void only(const std::string& key, const Json& expected) const;
  /// Refuses other keys than these, unless their value is null or false.
  void only_keys(const std::vector<std::string_view>& known) const;

 private:
  template <class T>
  [[nodiscard]] std::optional<T> read(const std::string& key, bool (Json::*is)() const noexcept,
                                      const char* expected) const;

  const Json& json_;
  std::string where_;
};

}  // namespace olmo::models
