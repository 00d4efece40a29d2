#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace olmo {

/// One thing that is wrong with a config.
struct ConfigProblem {
  std::string key;      ///< its path in a config file, e.g. "model.n_heads"
  std::string message;  ///< what follows the key, e.g. "must be above 0, got -1"
  /// What OLMo has and we lack, or what only this machine lacks: the config is read all the same,
  /// but no run may start with it.
  bool blocks_start = false;
};

/// Collects the problems of one room's config. Each room checks its own keys with it, once: a check
/// takes the key's name within the group and returns whether it held.
class ConfigChecks {
 public:
  /// `group`: the path that stands before the keys' names, with its dot ("model.").
  explicit ConfigChecks(std::string group = "") : group_(std::move(group)) {}

  void add(std::string_view key, std::string message);
  /// For what OLMo has and we do not.
  void add_unsupported(std::string_view key, std::string message);
  bool expect(bool holds, std::string_view key, const std::string& message);
  bool between(std::string_view key, std::int64_t value, std::int64_t low, std::int64_t high);
  bool between(std::string_view key, const std::optional<std::int64_t>& value, std::int64_t low,
               std::int64_t high);
  /// Finite and no less than `low`.
  bool at_least(std::string_view key, double value, double low);
  /// Above 0 and finite, also once it is rounded to fp32, in which it is computed with.
  bool positive(std::string_view key, double value);
  bool positive(std::string_view key, const std::optional<double>& value);
  bool one_of(std::string_view key, std::string_view value,
              std::span<const std::string_view> words);
  /// As one_of; `unsupported` are words of OLMo's that we know and cannot run.
  bool one_of(std::string_view key, std::string_view value, std::span<const std::string_view> words,
              std::span<const std::string_view> unsupported);

  void append(std::vector<ConfigProblem> more);
  [[nodiscard]] std::vector<ConfigProblem> take() { return std::move(problems_); }

 private:
  std::string group_;
  std::vector<ConfigProblem> problems_;
};

/// "`model.n_heads` must divide …; `model.n_layers` must lie in …".
std::string sentences_of(const std::vector<ConfigProblem>& problems);

/// Throws Error(kUsage) with all of them, unless there is none.
void require_none(const std::vector<ConfigProblem>& problems);

}  // namespace olmo
