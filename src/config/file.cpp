#include "config/file.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/files/input_file.h"

namespace olmo::config {
namespace {

void check_utf8(std::string_view text, const std::string& name) {
  const auto bad = find_non_utf8(text);
  if (!bad) return;
  const auto line =
      1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(*bad), '\n');
  throw Error(ErrorKind::kUsage, name + ":" + std::to_string(line) + ": is not text in UTF-8");
}

void check_size(std::size_t size, const std::string& name) {
  if (size <= kMaxConfigBytes) return;
  throw Error(ErrorKind::kUsage, name + ": is no config: it has " + std::to_string(size) +
                                     " bytes, at most " + std::to_string(kMaxConfigBytes) +
                                     " are read");
}

[[noreturn]] void fail_override(std::string_view text, const std::string& what) {
  throw Error(ErrorKind::kUsage, "command line: `" + std::string(text) + "` " + what);
}

void set_line(ConfigNode& node, int line) {
  node.line = line;
  for (auto& child : node.children) set_line(child, line);
}

ConfigNode* child_for(ConfigNode& node, std::string_view part, std::string_view whole) {
  if (node.kind == ConfigNode::Kind::kList) {
    const auto index = read_int(part);
    if (!index || *index < 0 || static_cast<std::size_t>(*index) >= node.children.size()) {
      fail_override(whole, "indexes a list of " + std::to_string(node.children.size()) + " with `" +
                               std::string(part) + "`");
    }
    return &node.children[static_cast<std::size_t>(*index)];
  }
  if (node.kind == ConfigNode::Kind::kScalar || node.kind == ConfigNode::Kind::kUnresolved) {
    fail_override(whole, "runs through `" + node.text + "`, which is a value and has no keys");
  }
  node.kind = ConfigNode::Kind::kMap;
  if (auto* found = node.find(part)) return found;
  node.keys.emplace_back(part);
  node.children.emplace_back();
  return &node.children.back();
}

/// The parts of `key.path=value`. With dashes before it, it is read as OLMo reads it (olmo/util.py,
/// clean_opt): dashes in the key are underscores, and a key alone is true.
std::pair<std::string, std::string_view> key_and_value(std::string_view whole) {
  std::string_view text = whole;
  while (text.starts_with('-')) text.remove_prefix(1);
  const bool is_option = text.size() < whole.size();
  const auto equals = text.find('=');
  if (equals == 0 || text.empty() || (equals == std::string_view::npos && !is_option))
    fail_override(whole, "is not key.path=value");
  check_utf8(text, "command line");
  check_size(text.size(), "command line");
  std::string key(text.substr(0, equals));
  if (is_option) std::replace(key.begin(), key.end(), '-', '_');
  return {key, equals == std::string_view::npos ? "true" : text.substr(equals + 1)};
}

void apply_override(ConfigDocument& document, std::string_view override_text) {
  const auto [key, value] = key_and_value(override_text);
  ConfigNode* node = &document.root;
  for (std::string_view path = key; !path.empty();) {
    const auto dot = path.find('.');
    const auto part = path.substr(0, dot);
    if (part.empty() || dot + 1 == path.size())
      fail_override(override_text, "has an empty part in its key");
    node = child_for(*node, part, override_text);
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  try {
    *node = parse_yaml_config(value, "value").root;
  } catch (const Error& error) {
    fail_override(override_text,
                  std::string("has a value that is not YAML (") + error.what() + ")");
  }
  set_line(*node, 0);
}

}  // namespace

bool is_yaml_name(const std::string& name) {
  const auto extension = std::filesystem::path(name).extension();
  return extension == ".yaml" || extension == ".yml";
}

ConfigDocument parse_config_document(std::string_view text, const std::string& name) {
  check_size(text.size(), name);
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  check_utf8(text, name);
  auto document =
      is_yaml_name(name) ? parse_yaml_config(text, name) : parse_json_config(text, name);
  if (document.root.kind != ConfigNode::Kind::kMap) {
    throw Error(ErrorKind::kUsage, name + ":1: is no config: expected keys and values at the top");
  }
  return document;
}

std::string read_config_text(const std::filesystem::path& file) {
  std::error_code error;
  const auto size = std::filesystem::file_size(file, error);
  if (error)
    throw Error(
        ErrorKind::kUsage,
        file.string() + ": cannot be read as a config (" +
            (error == std::errc::not_supported ? "it is not a regular file" : error.message()) +
            ")");
  check_size(size, file.string());
  try {
    return read_file(file);
  } catch (const Error& failure) {
    throw Error(ErrorKind::kUsage, failure.what());
  }
}

ConfigDocument read_config_file(const std::filesystem::path& file) {
  return parse_config_document(read_config_text(file), file.string());
}

std::vector<ConfigMessage> apply_overrides(ConfigDocument& document,
                                           const std::vector<std::string>& overrides) {
  std::vector<ConfigMessage> errors;
  for (const auto& text : overrides) {
    try {
      apply_override(document, text);
    } catch (const Error& error) {  // collected: all errors of a config are told at once
      errors.push_back({0, error.what()});
    }
  }
  return errors;
}

}  // namespace olmo::config
