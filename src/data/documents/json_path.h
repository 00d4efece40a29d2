#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/json.h"

namespace olmo::data {

/// A JSONPath of the filters of Dolma's mixer, which takes them as the library jsonpath-rust 0.3
/// does:
///
///   $.attributes.name, $.metadata['a key'], $.attributes.spans[0][2], $.list[*]
///   $.attributes[?(@.score[0][2] >= 0.5 && !(@.length < 100 || @.lang != 'en'))]
///
/// A filter `[?(…)]` looks at each element of a list, but at an object as a whole; so it does
/// within `&&`, `||` and `!`. `@.key` alone asks whether there is a value. `==` of two paths that
/// lead nowhere holds; `<` wants a number on each side. Unlike there, 1 equals 1.0. Descents
/// (`..`), slices, lists of keys, functions and operators in words are refused.
class JsonPath {
 public:
  /// Throws Error(kUsage) that tells what is wrong, and at which character.
  explicit JsonPath(std::string_view text);

  /// The values that the path leads to, in their order.
  [[nodiscard]] std::vector<const Json*> find(const Json& root) const;

  struct Path;

 private:
  std::shared_ptr<const Path> path_;
};

}  // namespace olmo::data
