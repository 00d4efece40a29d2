#include "config/node.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text/number.h"
#include "core/text/text.h"

namespace olmo::config {
namespace {

/// `text` without underscores, or nothing if it does not begin with a digit, a sign or a point.
std::optional<std::string> without_underscores(std::string_view text) {
  if (text.empty() || text.size() > 400 || text.front() == '_') return std::nullopt;
  std::string digits(text);
  digits.erase(std::remove(digits.begin(), digits.end(), '_'), digits.end());
  return digits;
}

int base_of(std::string_view& digits) {
  if (digits.size() < 2 || digits[0] != '0') return 10;
  const char mark = digits[1];
  if (mark == 'x' || mark == 'X' || mark == 'b' || mark == 'B') {
    digits.remove_prefix(2);
    return mark == 'x' || mark == 'X' ? 16 : 2;
  }
  digits.remove_prefix(1);
  return 8;
}

}  // namespace

const ConfigNode* ConfigNode::find(std::string_view key) const {
  const auto found = std::find(keys.begin(), keys.end(), key);
  return found == keys.end() ? nullptr : &children[static_cast<std::size_t>(found - keys.begin())];
}

ConfigNode* ConfigNode::find(std::string_view key) {
  return const_cast<ConfigNode*>(std::as_const(*this).find(key));
}

const ConfigNode* ConfigNode::at_path(std::string_view path) const {
  const ConfigNode* node = this;
  while (node != nullptr && !path.empty()) {
    const auto dot = path.find('.');
    const auto part = path.substr(0, dot);
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
    if (node->kind == Kind::kMap) {
      node = node->find(part);
    } else if (const auto index = read_int(part);
               node->kind == Kind::kList && index && *index >= 0 &&
               static_cast<std::size_t>(*index) < node->children.size()) {
      node = &node->children[static_cast<std::size_t>(*index)];
    } else {
      node = nullptr;
    }
  }
  return node;
}

std::vector<std::string> sorted_texts(std::vector<ConfigMessage> messages) {
  const auto order = [](const ConfigMessage& message) {
    return message.line == 0 ? std::numeric_limits<int>::max() : message.line;
  };
  std::stable_sort(messages.begin(), messages.end(),
                   [&](const auto& a, const auto& b) { return order(a) < order(b); });
  std::vector<std::string> texts;
  for (auto& message : messages) texts.push_back(std::move(message.text));
  return texts;
}

std::string ConfigDocument::where(int line) const {
  if (line < 0) return name;
  return line == 0 ? "command line" : name + ":" + std::to_string(line);
}

bool is_null_text(std::string_view text) {
  return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}

std::optional<bool> read_bool(std::string_view text) {
  for (const auto* word : {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"}) {
    if (text == word) return true;
  }
  for (const auto* word : {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"}) {
    if (text == word) return false;
  }
  return std::nullopt;
}

std::optional<std::int64_t> read_int(std::string_view text) {
  const auto cleaned = without_underscores(text);
  if (!cleaned) return std::nullopt;
  std::string_view digits = *cleaned;
  const bool negative = !digits.empty() && digits[0] == '-';
  if (!digits.empty() && (digits[0] == '-' || digits[0] == '+')) digits.remove_prefix(1);
  const int base = base_of(digits);
  std::uint64_t magnitude = 0;
  const auto end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, magnitude, base);
  if (error != std::errc() || stop != end) return std::nullopt;
  constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (magnitude > kLargest) return std::nullopt;
  const auto value = static_cast<std::int64_t>(magnitude);
  return negative ? -value : value;
}

std::optional<double> read_double(std::string_view text) {
  if (const auto integer = read_int(text)) return static_cast<double>(*integer);
  const auto cleaned = without_underscores(text);
  if (!cleaned) return std::nullopt;
  std::string_view digits = *cleaned;
  const bool negative = !digits.empty() && digits[0] == '-';
  if (!digits.empty() && (digits[0] == '-' || digits[0] == '+')) digits.remove_prefix(1);
  for (const auto* word : {".inf", ".Inf", ".INF"}) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (digits == word) return negative ? -kInfinity : kInfinity;
  }
  if (digits == ".nan" || digits == ".NaN" || digits == ".NAN")
    return std::numeric_limits<double>::quiet_NaN();
  // from_chars also takes "inf" and "nan", which are words here.
  if (digits.empty() || !(is_digit(digits[0]) || (digits[0] == '.' && digits.size() > 1)))
    return std::nullopt;
  double value = 0;
  const auto end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return negative ? -value : value;
}

std::optional<std::size_t> find_non_utf8(std::string_view text) {
  std::size_t position = 0;
  while (position < text.size()) {
    const CodePoint point = decode_utf8(text.substr(position));
    if (point.code == kBadUtf8 || point.code == 0) return position;
    position += point.size;
  }
  return std::nullopt;
}

Json to_json(const ConfigNode& node) {
  switch (node.kind) {
    case ConfigNode::Kind::kNull:
    case ConfigNode::Kind::kUnresolved:
    case ConfigNode::Kind::kInvalid:
      return nullptr;
    case ConfigNode::Kind::kScalar:
      if (node.style == ConfigNode::Style::kPlain) {
        if (const auto value = read_bool(node.text)) return *value;
        if (const auto value = read_int(node.text)) return *value;
        if (const auto value = read_double(node.text)) return *value;
      }
      return node.text;
    case ConfigNode::Kind::kList: {
      Json list = Json::array();
      for (const auto& child : node.children) list.push_back(to_json(child));
      return list;
    }
    case ConfigNode::Kind::kMap: {
      Json map = Json::object();
      for (std::size_t i = 0; i < node.keys.size(); ++i)
        map[node.keys[i]] = to_json(node.children[i]);
      return map;
    }
  }
  return nullptr;
}

std::size_t count_nodes(const ConfigNode& node) {
  std::size_t total = 1;
  for (const auto& child : node.children) total += count_nodes(child);
  return total;
}

ConfigBuilder::ConfigBuilder(std::string name) : name_(std::move(name)) {
  open_.emplace_back();
  open_.back().node.kind = ConfigNode::Kind::kList;
}

void ConfigBuilder::fail(int line, const std::string& what) const {
  throw Error(ErrorKind::kUsage, name_ + ":" + std::to_string(line) + ": " + what);
}

void ConfigBuilder::count(int line, std::size_t nodes) {
  nodes_ += nodes;
  if (nodes_ > kMaxConfigNodes)
    fail(line, "holds more than " + std::to_string(kMaxConfigNodes) + " values");
}

void ConfigBuilder::begin(int line, ConfigNode::Kind kind) {
  count(line, 1);
  if (open_.size() > static_cast<std::size_t>(kMaxConfigDepth)) {
    fail(line, "is nested deeper than " + std::to_string(kMaxConfigDepth) + " levels");
  }
  open_.emplace_back();
  open_.back().node.kind = kind;
  open_.back().node.line = line;
}

void ConfigBuilder::end() {
  ConfigNode node = std::move(open_.back().node);
  open_.pop_back();
  add(std::move(node));
}

void ConfigBuilder::key(int line, std::string name) {
  open_.back().key = std::move(name);
  open_.back().key_line = line;
}

void ConfigBuilder::scalar(int line, std::string text, ConfigNode::Style style) {
  count(line, 1);
  ConfigNode node;
  node.kind = ConfigNode::Kind::kScalar;
  node.style = style;
  node.text = std::move(text);
  node.line = line;
  add(std::move(node));
}

void ConfigBuilder::null(int line) {
  count(line, 1);
  ConfigNode node;
  node.line = line;
  add(std::move(node));
}

void ConfigBuilder::copy(int line, const ConfigNode& node) {
  count(line, count_nodes(node));
  ConfigNode copied = node;
  copied.line = line;
  add(std::move(copied));
}

void ConfigBuilder::add(ConfigNode node) {
  Open& parent = open_.back();
  if (parent.node.kind == ConfigNode::Kind::kMap) {
    node.line = parent.key_line;
    const auto [known, is_new] = parent.key_lines.emplace(parent.key, parent.key_line);
    if (!is_new) {
      duplicates_.push_back(name_ + ":" + std::to_string(parent.key_line) + ": `" + parent.key +
                            "` is set twice, first in line " + std::to_string(known->second));
      return;
    }
    parent.node.keys.push_back(parent.key);
  }
  parent.node.children.push_back(std::move(node));
}

const ConfigNode& ConfigBuilder::last() const { return open_.back().node.children.back(); }

ConfigDocument ConfigBuilder::finish() {
  if (!duplicates_.empty()) {
    throw Error(ErrorKind::kUsage, joined(duplicates_, "\n"));
  }
  ConfigDocument document;
  document.name = name_;
  if (!open_.front().node.children.empty())
    document.root = std::move(open_.front().node.children.front());
  return document;
}

}  // namespace olmo::config
