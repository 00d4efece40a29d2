// What a recorded evaluation was to score.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace olmo::report {

/// What was to be scored of a task or suite.
struct Asked {
  std::optional<std::int64_t> limit = {};       ///< instances at most; empty: all
  std::optional<std::int64_t> max_length = {};  ///< tokens of a text at most; empty: unknown
  /// What stands before a text, and before a request that has no context; empty: unknown.
  std::optional<std::int64_t> first_token = {};

  bool operator==(const Asked&) const = default;
};

/// Whether more instances are asked for.
bool asks_more(const Asked& one, const Asked& other);

/// What the settings of an evaluation tell of each task and suite. A training's evaluators have
/// limits of their own, which stand beside the name; `eval` has one for all.
class AskedParts {
 public:
  /// `settings`: JSON as recorded, whatever it is.
  explicit AskedParts(const std::string& settings);

  [[nodiscard]] Asked of(const std::string& name) const;

 private:
  std::map<std::string, Asked> parts_;
  Asked others_;
};

}  // namespace olmo::report
