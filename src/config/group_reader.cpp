#include "config/group_reader.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text/text.h"

namespace olmo::config {
namespace {

using Kind = ConfigNode::Kind;

/// OLMo's rules (olmo/train.py, Trainer.max_steps): 1000 or 1e3 steps, 2e12T tokens, 2ep epochs.
std::optional<optim::Duration> parse_duration(std::string_view text) {
  using Unit = optim::Duration::Unit;
  Unit unit = Unit::kSteps;
  if (text.ends_with("ep")) unit = Unit::kEpochs;
  if (text.ends_with("T")) unit = Unit::kTokens;
  text.remove_suffix(unit == Unit::kEpochs ? 2 : unit == Unit::kTokens ? 1 : 0);
  while (text.ends_with(' ')) text.remove_suffix(1);
  auto value = read_int(text);
  if (!value && unit != Unit::kEpochs) {
    const auto real = read_double(text);
    if (real && *real >= 0 && *real <= 0x1p62 && *real == std::floor(*real))
      value = static_cast<std::int64_t>(*real);
  }
  if (!value || *value < 0) return std::nullopt;
  return optim::Duration{.value = *value, .unit = unit};
}

std::string shown(const ConfigNode& node) {
  switch (node.kind) {
    case Kind::kNull:
      return "null";
    case Kind::kList:
      return "a list of " + std::to_string(node.children.size());
    case Kind::kMap:
      return "a map";
    case Kind::kScalar:
    case Kind::kUnresolved:
    case Kind::kInvalid:
      break;
  }
  const auto text = node.text.size() > 60 ? node.text.substr(0, 57) + "..." : node.text;
  return node.style == ConfigNode::Style::kPlain ? "`" + text + "`" : "the text \"" + text + "\"";
}

bool says_nothing(const ConfigNode& node) {
  if (node.kind == Kind::kScalar) return read_bool(node.text) == false;
  return node.children.empty() && node.kind != Kind::kUnresolved;
}

bool is_harmless(const ConfigNode& node, std::string_view harmless) {
  if (node.kind == Kind::kNull) return true;
  if (node.kind != Kind::kScalar) return false;
  for (const auto word : split_words(harmless)) {
    if (node.text == word) return true;
    const auto number = read_double(word);
    if (number && read_double(node.text) == number) return true;
    if (const auto truth = read_bool(word); truth && read_bool(node.text) == truth) return true;
  }
  return false;
}

bool has_unresolved(const ConfigNode& node) {
  return node.kind == Kind::kUnresolved ||
         std::any_of(node.children.begin(), node.children.end(), has_unresolved);
}

}  // namespace

ConfigMessage Findings::line(const ConfigNode* node, const std::string& path,
                             const std::string& what) const {
  const int number = node == nullptr ? -1 : node->line;
  return {number, document.where(number) + ": `" + path + "` " + what};
}

void Findings::require_keys(const ConfigNode& map, const std::string& path,
                            std::string_view names) {
  const auto words = split_words(names);
  const std::vector<std::string> known(words.begin(), words.end());
  for (std::size_t i = 0; i < map.keys.size(); ++i) {
    if (std::find(known.begin(), known.end(), map.keys[i]) != known.end()) continue;
    const auto close = nearest(map.keys[i], known);
    errors.push_back(line(&map.children[i], (path.empty() ? "" : path + ".") + map.keys[i],
                          "is not a key" + (close ? "; did you mean `" + *close + "`?" : "")));
  }
}

void GroupReader::operator()(const Key& key, const Absent& absent) {
  const auto* node = map_.find(key.name);
  if (node == nullptr) return;
  if (!absent.children.empty() && node->kind == Kind::kMap)
    findings_.require_keys(*node, prefix_ + key.name, absent.children);
  report_absent(*node, key, absent);
}

void GroupReader::report_unknown_keys() {
  for (std::size_t i = 0; i < map_.keys.size(); ++i) {
    const auto& name = map_.keys[i];
    if (name.find('.') != std::string::npos || find_key(rows_ + name) == nullptr)
      report_unknown(map_.children[i], name);
  }
}

void GroupReader::expected(const ConfigNode& node, const std::string& path,
                           const std::string& what) {
  findings_.unread.push_back(path);
  if (node.kind == Kind::kInvalid) return;
  findings_.errors.push_back(
      findings_.line(&node, path, "expects " + what + ", got " + shown(node)));
}

bool GroupReader::scalar(const ConfigNode& node, const std::string& path, const std::string& what) {
  if (node.kind == Kind::kUnresolved) {
    findings_.blockers.push_back(findings_.line(
        &node, path, "cannot be resolved here: " + node.text + "; give " + path + "=VALUE"));
    findings_.unread.push_back(path);
    return false;
  }
  if (node.kind == Kind::kScalar) return true;
  expected(node, path, what);
  return false;
}

bool GroupReader::list(const ConfigNode& node, const std::string& path, const std::string& what) {
  if (node.kind == Kind::kList) return true;
  if (node.kind == Kind::kUnresolved) {
    scalar(node, path, what);
  } else if (node.kind != Kind::kNull) {
    expected(node, path, what);
  }
  return false;
}

template <class T>
void GroupReader::read_number(const ConfigNode& node, const std::string& path,
                              const std::string& what, const std::optional<T>& parsed, T& value) {
  if (node.kind != Kind::kScalar) return static_cast<void>(scalar(node, path, what));
  if (parsed && node.style != ConfigNode::Style::kJsonString) {
    value = *parsed;
    return;
  }
  findings_.unread.push_back(path);
  findings_.misread.push_back({path, node.line, what, shown(node)});
  using Limits = std::numeric_limits<T>;
  if (on_misread_ == OnMisread::kBeyondAnyRange)
    value = Limits::has_quiet_NaN ? Limits::quiet_NaN() : Limits::max();
}

template <class T>
void GroupReader::take(const ConfigNode& node, const std::string& path, const std::string& what,
                       const std::optional<T>& parsed, T& value) {
  if (!parsed) return expected(node, path, what);
  value = *parsed;
}

void GroupReader::read(const ConfigNode& node, const std::string& path, bool& value) {
  constexpr const char* kWhat = "true or false";
  if (!scalar(node, path, kWhat)) return;
  const bool is_text = node.style == ConfigNode::Style::kJsonString;
  take(node, path, kWhat, is_text ? std::nullopt : read_bool(node.text), value);
}

void GroupReader::read(const ConfigNode& node, const std::string& path, std::int64_t& value) {
  read_number(node, path, "an integer", read_int(node.text), value);
}

void GroupReader::read(const ConfigNode& node, const std::string& path, std::uint64_t& value) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  const auto parsed = read_int(node.text);
  read_number(
      node, path, "an integer from 0 to " + std::to_string(kMost),
      parsed && *parsed >= 0 ? std::optional(static_cast<std::uint64_t>(*parsed)) : std::nullopt,
      value);
}

void GroupReader::read(const ConfigNode& node, const std::string& path, double& value) {
  const auto parsed = read_double(node.text);
  read_number(node, path, "a finite number",
              parsed && std::isfinite(*parsed) ? parsed : std::nullopt, value);
}

void GroupReader::read(const ConfigNode& node, const std::string& path, std::string& value) {
  if (scalar(node, path, "text")) value = node.text;
}

void GroupReader::read(const ConfigNode& node, const std::string& path,
                       std::vector<std::string>& value) {
  value.clear();
  if (!list(node, path, "a list of texts")) return;
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    read(node.children[i], path + "." + std::to_string(i), value.emplace_back());
  }
}

void GroupReader::read(const ConfigNode& node, const std::string& path,
                       std::map<std::string, std::vector<std::string>>& value) {
  value.clear();
  if (node.kind == Kind::kNull) return;
  if (node.kind != Kind::kMap) return expected(node, path, "a map of lists");
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    read(node.children[i], path + "." + node.keys[i], value[node.keys[i]]);
  }
}

void GroupReader::read(const ConfigNode& node, const std::string& path,
                       std::array<double, 2>& value) {
  if (node.kind == Kind::kUnresolved)
    return static_cast<void>(list(node, path, "a list of two numbers"));
  if (node.kind != Kind::kList || node.children.size() != 2)
    return expected(node, path, "a list of two numbers");
  for (std::size_t i = 0; i < 2; ++i)
    read(node.children[i], path + "." + std::to_string(i), value[i]);
}

void GroupReader::read(const ConfigNode& node, const std::string& path, optim::Duration& value) {
  constexpr const char* kWhat = "steps (1000), tokens (2e12T) or epochs (2ep)";
  if (scalar(node, path, kWhat)) take(node, path, kWhat, parse_duration(node.text), value);
}

void GroupReader::read(const ConfigNode& node, const std::string& path, Precision& value) {
  const auto what = "one of " + precision_names();
  if (scalar(node, path, what)) take(node, path, what, precision_named(node.text), value);
}

void GroupReader::read(const ConfigNode& node, const std::string& path, RawJson& value) {
  if (!list(node, path, "a list")) return;
  // What this machine cannot answer blocks a start where it is read, and has no JSON.
  if (!has_unresolved(node)) value.text = to_json(node).dump();
}

bool GroupReader::is_set(std::string_view setting) const {
  const auto equals = setting.find('=');
  const auto* node = findings_.document.root.at_path(setting.substr(0, equals));
  return node != nullptr && node->text == setting.substr(equals + 1);
}

void GroupReader::report_unknown(const ConfigNode& node, const std::string& name) {
  const auto meant = nearest_key(rows_ + name);
  std::string hint;
  if (meant) {
    const auto last = meant->rfind('.') + 1;  // 0 at the top
    const bool same_group = meant->substr(0, last) == rows_;
    hint = "; did you mean `" + (same_group ? meant->substr(last) : *meant) + "`?";
    findings_.unread.push_back(same_group ? prefix_ + meant->substr(last) : *meant);
  }
  findings_.errors.push_back(findings_.line(&node, prefix_ + name, "is not a key" + hint));
}

void GroupReader::report_absent(const ConfigNode& node, const Key& key, const Absent& absent) {
  const std::string path = prefix_ + key.name;
  if (absent.accepted == "*" || is_harmless(node, absent.accepted)) return;
  if (key.rule.effect == Effect::kIgnored) {
    if (!says_nothing(node))
      findings_.notes.push_back(
          findings_.line(&node, path, "is not honoured: " + std::string(key.help)));
    return;
  }
  if (!absent.only_with.empty() && !is_set(absent.only_with)) return;
  const std::string accepted(absent.accepted.empty() ? "null" : absent.accepted);
  findings_.blockers.push_back(findings_.line(
      &node, path, "is " + shown(node) + ", but " + key.help + ": expected " + accepted));
}

}  // namespace olmo::config
