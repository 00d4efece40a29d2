#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <unordered_set>

#include <glob.h>

#include "config/file.h"

namespace olmo::config {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxReferenceDepth = 64;
constexpr std::size_t kMaxReferenceBytes = std::size_t{1} << 20;  ///< of one value
constexpr std::size_t kMaxCopiedBytes = std::size_t{64} << 20;    ///< of all values together
constexpr int kMaxReferences = 10'000;

/// A reference that is wrong wherever the config is read.
struct BadReference {
  std::string message;
};
/// A reference that only this machine cannot answer.
struct Unanswered {
  std::string message;
};

ConfigNode scalar(std::string text) {
  ConfigNode node;
  node.kind = ConfigNode::Kind::kScalar;
  node.text = std::move(text);
  return node;
}

bool is_url(std::string_view path) { return path.find("://") != std::string_view::npos; }

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::string unquoted(std::string_view text) {
  text = trimmed(text);
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
      text.back() == text.front()) {
    text = text.substr(1, text.size() - 2);
  }
  return std::string(text);
}

/// Position after the `}` that closes the `${` at `begin`.
std::size_t end_of_reference(std::string_view text, std::size_t begin) {
  int depth = 0;
  for (std::size_t i = begin; i < text.size(); ++i) {
    if (text[i] == '{') ++depth;
    if (text[i] == '}' && --depth == 0) return i + 1;
  }
  throw BadReference{"has a reference `" + std::string(text.substr(begin, 60)) +
                     "` without its closing brace"};
}

/// Splits at commas that are in no braces, brackets or quotes.
std::vector<std::string_view> split_arguments(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  char quote = '\0';
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == ',' && depth == 0) {
      parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  parts.push_back(text.substr(begin));
  return parts;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const auto& part : parts) text += (text.empty() ? "`" : ", `") + part + "`";
  return text;
}

ConfigNode choose(const std::vector<std::string>& paths) {
  for (const auto& path : paths) {
    std::error_code ignored;
    if (is_url(path) || fs::exists(path, ignored)) return scalar(path);
  }
  throw Unanswered{"none of " + joined(paths) + " exists"};
}

ConfigNode match(const std::vector<std::string>& patterns) {
  ConfigNode list;
  list.kind = ConfigNode::Kind::kList;
  for (const auto& pattern : patterns) {
    glob_t found{};
    const int status = glob(pattern.c_str(), 0, nullptr, &found);
    std::vector<std::string> paths(found.gl_pathv,
                                   found.gl_pathv + (status == 0 ? found.gl_pathc : 0));
    globfree(&found);
    if (paths.empty()) throw Unanswered{"no file matches `" + pattern + "`"};
    std::sort(paths.begin(), paths.end());
    for (auto& path : paths) list.children.push_back(scalar(std::move(path)));
    if (list.children.size() > kMaxConfigNodes)
      throw Unanswered{"too many files match `" + pattern + "`"};
  }
  return list;
}

/// The checkpoint `step<N>` (also `step<N>-unsharded`, as OLMo names them) with the largest N.
ConfigNode last_checkpoint(const std::string& folder) {
  if (is_url(folder))
    throw Unanswered{"`" + folder + "` is a URL, and checkpoints are read from local folders"};
  std::int64_t best = -1;
  std::string best_path;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const auto name = entry.path().filename().string();
    if (name.rfind("step", 0) != 0) continue;
    const auto digits = name.substr(4, name.find_first_not_of("0123456789", 4) - 4);
    const auto suffix = name.substr(4 + digits.size());
    const auto step = read_int("1" + digits);  // a leading 1 keeps 0007 decimal, and the order
    if (digits.empty() || digits.size() > 15 || !step ||
        (!suffix.empty() && suffix != "-unsharded"))
      continue;
    const auto value = std::stoll(digits);
    if (value > best || (value == best && suffix.empty())) {
      best = value;
      best_path = entry.path().string();
    }
  }
  if (best < 0) throw Unanswered{"no checkpoint (step<N>) was found in `" + folder + "`"};
  return scalar(best_path);
}

/// Resolves a tree in place. A node is resolved when something refers to it or when the walk
/// reaches it.
class Resolver {
 public:
  Resolver(ConfigDocument& document, const ConfigNode& defaults)
      : document_(document), defaults_(defaults) {}

  std::vector<ConfigMessage> run() {
    walk(document_.root, "");
    return std::move(errors_);
  }

 private:
  void walk(ConfigNode& node, const std::string& path) {
    if (node.kind == ConfigNode::Kind::kScalar) resolve_scalar(node, path);
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      const auto part = node.kind == ConfigNode::Kind::kMap ? node.keys[i] : std::to_string(i);
      walk(node.children[i], path.empty() ? part : path + "." + part);
    }
  }

  void resolve_scalar(ConfigNode& node, const std::string& path) {
    if (node.text.find("${") == std::string::npos || done_.count(&node) != 0) return;
    const int line = node.line;
    const int outer_depth = depth_;
    const std::string text = std::move(node.text);
    const auto style = node.style;
    open_.push_back(path);
    try {
      node = evaluate(text, path);
      if (find_non_utf8(node.text)) throw BadReference{"becomes a text that is not UTF-8"};
      if (node.kind == ConfigNode::Kind::kScalar && text.compare(0, 2, "${") != 0)
        node.style = style;
    } catch (const BadReference& bad) {
      node = ConfigNode();
      node.kind = ConfigNode::Kind::kInvalid;
      errors_.push_back({line, document_.where(line) + ": `" + path + "` " + bad.message});
    } catch (const Unanswered& unanswered) {
      node = ConfigNode();
      node.kind = ConfigNode::Kind::kUnresolved;
      node.text = unanswered.message;
    }
    depth_ = outer_depth;
    open_.pop_back();
    settle(node, line);
  }

  /// A value put in is not looked at again: what it holds is text, even if it looks like a
  /// reference.
  void settle(ConfigNode& node, int line) {
    node.line = line;
    done_.insert(&node);
    for (auto& child : node.children) settle(child, line);
  }

  /// Value of a text with references: the value itself if the text is one reference, else the text
  /// with values put in.
  ConfigNode evaluate(std::string_view text, const std::string& path) {
    if (open_.size() > kMaxReferenceDepth || ++depth_ > kMaxReferenceDepth) {
      throw BadReference{"has references nested deeper than " + std::to_string(kMaxReferenceDepth)};
    }
    ConfigNode result = evaluate_parts(text, path);
    --depth_;
    return result;
  }

  ConfigNode evaluate_parts(std::string_view text, const std::string& path) {
    if (text.substr(0, 2) == "${" && end_of_reference(text, 0) == text.size()) {
      return reference(text.substr(2, text.size() - 3), path);
    }
    std::string out;
    for (std::size_t i = 0; i < text.size();) {
      if (text.substr(i, 3) == "\\${") {
        out += "${";
        i += 3;
      } else if (text.substr(i, 2) == "${") {
        const auto end = end_of_reference(text, i);
        out += plain_text(reference(text.substr(i + 2, end - i - 3), path));
        i = end;
      } else {
        out.push_back(text[i++]);
      }
      if (out.size() > kMaxReferenceBytes)
        throw BadReference{"grows beyond 1 MB by its references"};
    }
    return scalar(out);
  }

  static std::string plain_text(const ConfigNode& node) {
    if (node.kind == ConfigNode::Kind::kNull) return "null";
    if (node.kind == ConfigNode::Kind::kUnresolved) throw Unanswered{node.text};
    if (node.kind == ConfigNode::Kind::kInvalid)
      throw Unanswered{"it refers to a value with an error"};
    if (node.kind != ConfigNode::Kind::kScalar)
      throw BadReference{"puts a list or a map into a text"};
    return node.text;
  }

  ConfigNode reference(std::string_view body, const std::string& path) {
    if (++references_ > kMaxReferences) throw BadReference{"is one of too many references"};
    int depth = 0;
    for (std::size_t i = 0; i < body.size(); ++i) {
      if (body[i] == '{') ++depth;
      if (body[i] == '}') --depth;
      if (body[i] == ':' && depth == 0)
        return call(trimmed(body.substr(0, i)), body.substr(i + 1), path);
    }
    const auto key = plain_text(evaluate(trimmed(body), path));
    auto* found = look_up(absolute(key, path));
    if (found == nullptr) throw BadReference{"refers to `${" + key + "}`, which is not set"};
    return *found;
  }

  /// OmegaConf's relative keys: one leading dot is the map that holds the value, each further one
  /// its parent.
  static std::string absolute(std::string key, const std::string& path) {
    std::replace(key.begin(), key.end(), '[', '.');
    key.erase(std::remove(key.begin(), key.end(), ']'), key.end());
    std::string base = path;
    if (key.empty() || key[0] != '.') return key;
    while (!key.empty() && key[0] == '.') {
      const auto dot = base.rfind('.');
      base = dot == std::string::npos ? "" : base.substr(0, dot);
      key.erase(0, 1);
    }
    return base.empty() ? key : key.empty() ? base : base + "." + key;
  }

  const ConfigNode* look_up(const std::string& path) {
    const auto* found = document_.root.at_path(path);
    if (found == nullptr) return defaults_.at_path(path);
    if (found->kind == ConfigNode::Kind::kList || found->kind == ConfigNode::Kind::kMap) {
      // A list or map is copied as it will be: everything in it is resolved first.
      for (const auto& open : open_) {
        if (open == path || open.compare(0, path.size() + 1, path + ".") == 0) throw cycle(path);
      }
      open_.push_back(path);
      walk(const_cast<ConfigNode&>(*found), path);
      open_.pop_back();
    } else if (found->kind == ConfigNode::Kind::kScalar) {
      if (std::find(open_.begin(), open_.end(), path) != open_.end()) throw cycle(path);
      resolve_scalar(const_cast<ConfigNode&>(*found), path);
    }
    if ((copied_bytes_ += bytes(*found)) > kMaxCopiedBytes)
      throw BadReference{"copies too much by references"};
    return found;
  }

  BadReference cycle(const std::string& path) const {
    std::string chain;
    for (const auto& open : open_) chain += open + " -> ";
    return BadReference{"refers to itself: " + chain + path};
  }

  static std::size_t bytes(const ConfigNode& node) {
    std::size_t total = sizeof(ConfigNode) + node.text.size();
    for (const auto& key : node.keys) total += key.size();
    for (const auto& child : node.children) total += bytes(child);
    return total;
  }

  ConfigNode call(std::string_view name, std::string_view arguments, const std::string& path) {
    if (name == "oc.decode") return evaluate(trimmed(arguments), path);
    const auto parts = split_arguments(arguments);
    if (name == "oc.env") return environment(parts, path);
    if (name == "oc.select") return select(parts, path);
    if (name == "path.choose") return choose(texts(parts, path));
    if (name == "path.glob") return match(texts(parts, path));
    if (name == "path.last_checkpoint" && parts.size() == 1)
      return last_checkpoint(texts(parts, path).front());
    throw BadReference{"calls `" + std::string(name) +
                       "`, which is not one of oc.env, oc.select, oc.decode, " +
                       "path.choose, path.glob, path.last_checkpoint (with one folder)"};
  }

  std::vector<std::string> texts(const std::vector<std::string_view>& parts,
                                 const std::string& path) {
    std::vector<std::string> out;
    for (const auto part : parts) out.push_back(plain_text(evaluate(unquoted(part), path)));
    return out;
  }

  ConfigNode fallback(std::string_view text, const std::string& path) {
    auto node = evaluate(unquoted(text), path);
    if (node.kind == ConfigNode::Kind::kScalar && is_null_text(node.text)) return ConfigNode();
    return node;
  }

  ConfigNode environment(const std::vector<std::string_view>& parts, const std::string& path) {
    const auto name = plain_text(evaluate(trimmed(parts[0]), path));
    const char* value = std::getenv(name.c_str());
    if (value != nullptr) return scalar(value);
    if (parts.size() > 1) return fallback(parts[1], path);
    throw Unanswered{"the environment variable `" + name + "` is not set"};
  }

  ConfigNode select(const std::vector<std::string_view>& parts, const std::string& path) {
    const auto key = plain_text(evaluate(trimmed(parts[0]), path));
    if (const auto* found = look_up(absolute(key, path))) return *found;
    return parts.size() > 1 ? fallback(parts[1], path) : ConfigNode();
  }

  ConfigDocument& document_;
  const ConfigNode& defaults_;
  std::vector<std::string> open_;  ///< paths that are being resolved
  std::vector<ConfigMessage> errors_;
  std::unordered_set<const ConfigNode*> done_;
  std::size_t copied_bytes_ = 0;
  int references_ = 0;
  int depth_ = 0;
};

}  // namespace

std::vector<ConfigMessage> resolve_references(ConfigDocument& document,
                                              const ConfigNode& defaults) {
  return Resolver(document, defaults).run();
}

}  // namespace olmo::config
