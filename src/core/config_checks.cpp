#include "core/config_checks.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/text/text.h"

namespace olmo {
namespace {

constexpr std::size_t kShownBytes = 60;  ///< of a word that is none

std::string listed(std::span<const std::string_view> words, std::string_view quote) {
  std::string text;
  for (const auto word : words) {
    if (!text.empty()) text += ", ";
    text.append(quote).append(word).append(quote);
  }
  return text;
}

bool contains(std::span<const std::string_view> words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

void ConfigChecks::add(std::string_view key, std::string message) {
  problems_.push_back({group_ + std::string(key), std::move(message)});
}

void ConfigChecks::add_unsupported(std::string_view key, std::string message) {
  add(key, std::move(message));
  problems_.back().blocks_start = true;
}

bool ConfigChecks::expect(bool holds, std::string_view key, const std::string& message) {
  if (!holds) add(key, message);
  return holds;
}

bool ConfigChecks::between(std::string_view key, std::int64_t value, std::int64_t low,
                           std::int64_t high) {
  return expect(value >= low && value <= high, key,
                "must lie in " + std::to_string(low) + ".." + std::to_string(high) + ", got " +
                    std::to_string(value));
}

bool ConfigChecks::between(std::string_view key, const std::optional<std::int64_t>& value,
                           std::int64_t low, std::int64_t high) {
  return !value || between(key, *value, low, high);
}

bool ConfigChecks::at_least(std::string_view key, double value, double low) {
  return expect(std::isfinite(value) && value >= low, key,
                "must be at least " + number_text(low) + ", got " + number_text(value));
}

bool ConfigChecks::positive(std::string_view key, double value) {
  if (!expect(std::isfinite(value) && value > 0, key, "must be above 0, got " + number_text(value)))
    return false;
  const auto rounded = static_cast<float>(value);
  return expect(rounded > 0 && std::isfinite(rounded), key,
                "must be a number that fp32 can hold, got " + number_text(value));
}

bool ConfigChecks::positive(std::string_view key, const std::optional<double>& value) {
  return !value || positive(key, *value);
}

bool ConfigChecks::one_of(std::string_view key, std::string_view value,
                          std::span<const std::string_view> words) {
  return expect(contains(words, value), key,
                "is `" + std::string(value.substr(0, kShownBytes)) + "`, expected one of " +
                    listed(words, ""));
}

bool ConfigChecks::one_of(std::string_view key, std::string_view value,
                          std::span<const std::string_view> words,
                          std::span<const std::string_view> unsupported) {
  if (!contains(unsupported, value)) return one_of(key, value, words);
  add_unsupported(key, "is `" + std::string(value) + "`, which is not supported here: expected " +
                           listed(words, "`"));
  return false;
}

void ConfigChecks::append(std::vector<ConfigProblem> more) {
  problems_.insert(problems_.end(), std::make_move_iterator(more.begin()),
                   std::make_move_iterator(more.end()));
}

std::string sentences_of(const std::vector<ConfigProblem>& problems) {
  std::string text;
  for (const auto& [key, message, blocks] : problems)
    text.append(text.empty() ? "`" : "; `").append(key).append("` ").append(message);
  return text;
}

void require_none(const std::vector<ConfigProblem>& problems) {
  if (!problems.empty()) throw Error(ErrorKind::kUsage, sentences_of(problems));
}

}  // namespace olmo
