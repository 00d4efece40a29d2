#pragma once

#include <span>
#include <string_view>

namespace olmo::eval {

/// A file of `evals/` as it was when the binary was built.
struct EmbeddedDefinition {
  std::string_view folder;  ///< "tasks" or "suites"
  std::string_view name;    ///< without .json
  std::string_view text;
};

/// All of them; the build makes the table (embed_definitions.cmake).
std::span<const EmbeddedDefinition> embedded_definitions();

}  // namespace olmo::eval
