#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <unordered_set>

#include <glob.h>
#include <nlohmann/json.hpp>

#include "config/file.h"
#include "config/key_table.h"
#include "core/text/text.h"

namespace olmo::config {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxDepth = 64;  ///< of references in references, and of keys behind keys
constexpr std::size_t kMaxBytes = std::size_t{1} << 20;         ///< of one value
constexpr std::size_t kMaxCopiedBytes = std::size_t{64} << 20;  ///< of all values together
constexpr int kMaxReferences = 10'000;

/// A reference that is wrong wherever the config is read.
struct BadReference {
  std::string message;
};
/// A reference that only this machine cannot answer.
struct Unanswered {
  std::string message;
};

/// What a function gives, or a text with values put in: text, whatever it looks like.
ConfigNode scalar(std::string text) {
  ConfigNode node;
  node.kind = ConfigNode::Kind::kScalar;
  node.style = ConfigNode::Style::kQuoted;
  node.text = std::move(text);
  return node;
}

ConfigNode choose(const std::vector<std::string>& paths) {
  std::string listed;
  for (const auto& path : paths) {
    std::error_code ignored;
    if (path.find("://") != std::string::npos || fs::exists(path, ignored)) return scalar(path);
    listed += (listed.empty() ? "`" : ", `") + path + "`";
  }
  throw Unanswered{"none of " + listed + " exists"};
}

/// The files that match, in the order of their names.
ConfigNode match(const std::string& pattern) {
  glob_t found{};
  const int status = glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::string> paths(found.gl_pathv,
                                 found.gl_pathv + (status == 0 ? found.gl_pathc : 0));
  globfree(&found);
  if (paths.empty()) throw Unanswered{"no file matches `" + pattern + "`"};
  if (paths.size() > kMaxConfigNodes) throw Unanswered{"too many files match `" + pattern + "`"};
  std::sort(paths.begin(), paths.end());
  ConfigNode list;
  list.kind = ConfigNode::Kind::kList;
  for (auto& path : paths) list.children.push_back(scalar(std::move(path)));
  return list;
}

ConfigNode environment(const std::vector<std::string>& arguments) {
  if (const char* value = std::getenv(arguments[0].c_str())) return scalar(value);
  if (arguments.size() < 2)
    throw Unanswered{"the environment variable `" + arguments[0] + "` is not set"};
  return is_null_text(arguments[1]) ? ConfigNode() : scalar(arguments[1]);
}

/// The step of a folder named as OLMo names checkpoints, `step1000` or `step1000-unsharded`.
std::optional<std::int64_t> step_of(std::string name) {
  for (const std::string_view part : {"step", "-unsharded"}) {
    if (const auto at = name.find(part); at != name.npos) name.erase(at, part.size());
  }
  return read_int(name);
}

/// The checkpoint with the highest step, of two the one in shards (olmo/util.py,
/// find_latest_checkpoint).
ConfigNode last_checkpoint(const std::string& folder) {
  std::int64_t latest = 0;
  fs::path found;
  std::error_code unread;
  for (fs::directory_iterator entry(folder, unread), end; !unread && entry != end;
       entry.increment(unread)) {
    const std::string name = entry->path().filename();
    std::error_code ignored;
    if (!name.starts_with("step") || !entry->is_directory(ignored)) continue;
    const auto step = step_of(name);
    if (!step || *step < latest || (*step == latest && name.ends_with("-unsharded"))) continue;
    latest = *step;
    found = entry->path();
  }
  if (found.empty()) throw Unanswered{"no checkpoint is in `" + folder + "`"};
  return scalar(found);
}

ConfigNode call(const std::string& name, const std::vector<std::string>& arguments) {
  if (name == "oc.env" && arguments.size() <= 2) return environment(arguments);
  if (name == "path.choose") return choose(arguments);
  if (name == "path.glob" && arguments.size() == 1) return match(arguments[0]);
  if (name == "path.last_checkpoint" && arguments.size() == 1) return last_checkpoint(arguments[0]);
  throw BadReference{"calls `" + name +
                     "`, which is not one of oc.env:NAME,DEFAULT, path.choose:PATH,PATH, "
                     "path.glob:PATTERN and path.last_checkpoint:FOLDER; write the value itself"};
}

/// Python's str() of a number.
std::string python_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  // nlohmann's has an exponent from 1e15 on, Python's from 1e16 on.
  if (std::abs(value) >= 1e15 && std::abs(value) < 1e16)
    return std::to_string(std::llround(value)) + ".0";
  return Json(value).dump();
}

/// What a value is as part of a text: Python's str() of it, as OmegaConf has it.
std::string plain_text(const ConfigNode& node) {
  switch (node.kind) {
    case ConfigNode::Kind::kNull:
      return "None";
    case ConfigNode::Kind::kUnresolved:
      throw Unanswered{node.text};
    case ConfigNode::Kind::kInvalid:
      throw Unanswered{"it refers to a value with an error"};
    case ConfigNode::Kind::kScalar:
      if (node.style != ConfigNode::Style::kPlain) return node.text;
      if (const auto flag = read_bool(node.text)) return *flag ? "True" : "False";
      if (const auto integer = read_int(node.text)) return std::to_string(*integer);
      if (const auto number = read_double(node.text)) return python_text(*number);
      return node.text;
    default:
      throw BadReference{"puts a list or a map into a text"};
  }
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
  /// A text and how far it has been read.
  struct Cursor {
    std::string_view text;
    std::size_t at = 0;

    [[nodiscard]] bool starts_with(std::string_view part) const {
      return text.substr(at, part.size()) == part;
    }
  };

  void walk(ConfigNode& node, const std::string& path) {
    if (node.kind == ConfigNode::Kind::kScalar) resolve(node, path);
    if (done_.contains(&node)) return;  // a list that a reference has put in is text
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      const auto part = node.kind == ConfigNode::Kind::kMap ? node.keys[i] : std::to_string(i);
      walk(node.children[i], path.empty() ? part : path + "." + part);
    }
  }

  void resolve(ConfigNode& node, const std::string& path) {
    if (node.text.find("${") == std::string::npos || done_.contains(&node)) return;
    const int line = node.line;
    const auto style = node.style;
    const std::string text = std::move(node.text);
    open_.push_back(path);
    try {
      node = value_of(text);
      if (find_non_utf8(node.text))
        throw BadReference{"becomes a text that is not UTF-8 or has a NUL character"};
      if (style == ConfigNode::Style::kJsonString && !text.starts_with("${")) node.style = style;
    } catch (const BadReference& bad) {
      node = ConfigNode();
      node.kind = ConfigNode::Kind::kInvalid;
      errors_.push_back({line, document_.where(line) + ": `" + path + "` " + bad.message});
    } catch (const Unanswered& unanswered) {
      node = ConfigNode();
      node.kind = ConfigNode::Kind::kUnresolved;
      node.text = unanswered.message;
    }
    open_.pop_back();
    node.line = line;
    for (auto& child : node.children) child.line = line;
    done_.insert(&node);
  }

  /// The value that a text refers to if it is one reference, else the text with values put in.
  ConfigNode value_of(std::string_view text) {
    Cursor cursor{text};
    if (cursor.starts_with("${")) {
      ConfigNode node = reference(cursor, 1);
      if (cursor.at == text.size()) return node;
      return scalar(plain_text(node) + text_until(cursor, "", 0));
    }
    return scalar(text_until(cursor, "", 0));
  }

  /// The text up to one of `ends` (which stays) with its references put in; `\${` is `${`.
  std::string text_until(Cursor& cursor, std::string_view ends, std::size_t depth) {
    std::string out;
    while (cursor.at < cursor.text.size() && ends.find(cursor.text[cursor.at]) == ends.npos) {
      if (cursor.starts_with("\\${")) {
        out += "${";
        cursor.at += 3;
      } else if (cursor.starts_with("${")) {
        out += plain_text(reference(cursor, depth + 1));
      } else {
        out += cursor.text[cursor.at++];
      }
      if (out.size() > kMaxBytes) throw BadReference{"grows beyond 1 MB by its references"};
    }
    return out;
  }

  /// `${key.path}` or `${function:argument,argument}`.
  ConfigNode reference(Cursor& cursor, std::size_t depth) {
    const auto begin = cursor.at;
    const auto require_more = [&] {
      if (cursor.at < cursor.text.size()) return;
      throw BadReference{"has a reference `" + std::string(cursor.text.substr(begin, 60)) +
                         "` without its closing brace"};
    };
    if (depth > kMaxDepth || open_.size() > kMaxDepth)
      throw BadReference{"has references nested deeper than " + std::to_string(kMaxDepth)};
    if (++references_ > kMaxReferences) throw BadReference{"is one of too many references"};
    cursor.at += 2;
    const std::string written = text_until(cursor, ":}", depth);
    const std::string name(trimmed(written));
    require_more();
    std::vector<std::string> arguments;
    while (cursor.text[cursor.at] != '}') {
      ++cursor.at;
      arguments.emplace_back(trimmed(text_until(cursor, ",}", depth)));
      require_more();
    }
    ++cursor.at;
    return arguments.empty() ? look_up(name) : call(name, arguments);
  }

  ConfigNode look_up(const std::string& path) {
    if (std::find(open_.begin(), open_.end(), path) != open_.end()) {
      std::string chain;
      for (const auto& open : open_) chain += open + " -> ";
      throw BadReference{"refers to itself: " + chain + path};
    }
    auto* set = const_cast<ConfigNode*>(document_.root.at_path(path));
    if (set != nullptr && set->kind == ConfigNode::Kind::kScalar) resolve(*set, path);
    const ConfigNode* found = set != nullptr ? set : defaults_.at_path(path);
    if (found == nullptr) throw BadReference{"refers to `${" + path + "}`, which is not set"};
    if (found->kind == ConfigNode::Kind::kList || found->kind == ConfigNode::Kind::kMap) {
      throw BadReference{"refers to `${" + path +
                         "}`, which is a list or a map: only single values can be referred to"};
    }
    if ((copied_bytes_ += found->text.size()) > kMaxCopiedBytes)
      throw BadReference{"copies too much by references"};
    ConfigNode value = *found;
    // A name that looks like a number is the name that its key reads.
    const KeyRow* row = find_key(path);
    const bool is_text = row != nullptr && row->type.starts_with("text");
    if (is_text && value.style == ConfigNode::Style::kPlain)
      value.style = ConfigNode::Style::kQuoted;
    return value;
  }

  ConfigDocument& document_;
  const ConfigNode& defaults_;
  std::vector<std::string> open_;  ///< paths that are being resolved
  std::vector<ConfigMessage> errors_;
  /// What a reference has put in is not looked at again: it is text, even if it looks like one.
  std::unordered_set<const ConfigNode*> done_;
  int references_ = 0;
  std::size_t copied_bytes_ = 0;
};

}  // namespace

std::vector<ConfigMessage> resolve_references(ConfigDocument& document,
                                              const ConfigNode& defaults) {
  return Resolver(document, defaults).run();
}

}  // namespace olmo::config
