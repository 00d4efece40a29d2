#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "config/fields.h"
#include "config/file.h"
#include "config/foreign.h"
#include "config/train_config.h"
#include "core/error.h"
#include "core/nearest.h"

namespace olmo::config {
namespace {

using Kind = ConfigNode::Kind;

/// What has been found so far.
struct Findings {
  const ConfigDocument& document;
  std::vector<ConfigMessage> errors;
  std::vector<ConfigMessage> notes;
  std::vector<ConfigMessage> blockers;
  std::vector<std::string> unread;  ///< keys that keep a default only because of an error

  /// A message about the key at `path`; `node` is its value, or nullptr if it is not set.
  [[nodiscard]] ConfigMessage line(const ConfigNode* node, const std::string& path,
                                   const std::string& what) const {
    const int number = node == nullptr ? -1 : node->line;
    return {number, document.where(number) + ": `" + path + "` " + what};
  }
};

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

/// Names of the keys of a struct, as visit_fields lists them.
struct NameLister {
  std::vector<std::string> names;
  template <class T>
  void operator()(const char* name, const T& /*value*/) {
    names.emplace_back(name);
  }
};

/// Every path that a config may set, leaves and groups alike.
struct PathLister {
  std::string prefix;
  std::vector<std::string> paths;

  template <class T>
  void operator()(const char* name, const T& value) {
    const auto path = prefix + name;
    paths.push_back(path);
    if constexpr (requires(PathLister & lister) { visit_fields(value, lister); }) {
      const auto outer = prefix;
      prefix = path + ".";
      visit_fields(value, *this);
      prefix = outer;
    }
  }
};

std::vector<std::string> all_paths() {
  PathLister lister;
  const TrainConfig config;
  visit_fields(config, lister);
  for (const auto& key : foreign_keys()) lister.paths.emplace_back(key.path);
  return lister.paths;
}

std::string parent_of(const std::string& path) {
  const auto dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

std::string leaf_of(const std::string& path) { return path.substr(path.rfind('.') + 1); }

/// The key that was meant by an unknown one: the same name elsewhere, else a similar one of the
/// same group, else a similar one anywhere.
std::optional<std::string> meant_by(const std::string& path) {
  const auto known = all_paths();
  std::vector<std::string> siblings;
  std::vector<std::string> leaves;
  for (const auto& candidate : known) {
    if (leaf_of(candidate) == leaf_of(path)) return candidate;
    if (parent_of(candidate) == parent_of(path)) siblings.push_back(leaf_of(candidate));
    leaves.push_back(leaf_of(candidate));
  }
  if (const auto name = nearest(leaf_of(path), siblings)) {
    return parent_of(path).empty() ? *name : parent_of(path) + "." + *name;
  }
  if (const auto name = nearest(leaf_of(path), leaves)) {
    const auto at = std::find(leaves.begin(), leaves.end(), *name) - leaves.begin();
    return known[static_cast<std::size_t>(at)];
  }
  return std::nullopt;
}

std::string shown(const ConfigNode& node) {
  switch (node.kind) {
    case Kind::kNull:
      return "null";
    case Kind::kList:
      return "a list";
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

/// Reads the values of one map into a struct: the visitor of visit_fields.
class Reader {
 public:
  Reader(Findings& findings, const ConfigNode& map, std::string prefix)
      : findings_(findings), map_(map), prefix_(std::move(prefix)) {}

  template <class T>
  void operator()(const char* name, T& value) {
    if (const auto* node = map_.find(name)) read(*node, prefix_ + name, value);
  }

 private:
  void expected(const ConfigNode& node, const std::string& path, const std::string& what) {
    findings_.unread.push_back(path);
    if (node.kind == Kind::kInvalid) return;
    findings_.errors.push_back(
        findings_.line(&node, path, "expects " + what + ", got " + shown(node)));
  }

  /// True if the node is a scalar; otherwise says that `what` was expected.
  bool scalar(const ConfigNode& node, const std::string& path, const std::string& what) {
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

  /// The text of a node that must not be a string of JSON.
  bool number(const ConfigNode& node, const std::string& path, const std::string& what) {
    if (!scalar(node, path, what)) return false;
    if (node.style != ConfigNode::Style::kJsonString) return true;
    expected(node, path, what);
    return false;
  }

  void read(const ConfigNode& node, const std::string& path, bool& value) {
    if (!number(node, path, "true or false")) return;
    if (const auto parsed = read_bool(node.text)) {
      value = *parsed;
    } else {
      expected(node, path, "true or false");
    }
  }

  void read(const ConfigNode& node, const std::string& path, std::int64_t& value) {
    if (!number(node, path, "an integer")) return;
    if (const auto parsed = read_int(node.text)) {
      value = *parsed;
    } else {
      expected(node, path, "an integer");
    }
  }

  void read(const ConfigNode& node, const std::string& path, std::uint64_t& value) {
    if (!number(node, path, "an integer of at least 0")) return;
    if (const auto parsed = read_int(node.text); parsed && *parsed >= 0) {
      value = static_cast<std::uint64_t>(*parsed);
    } else {
      expected(node, path, "an integer of at least 0");
    }
  }

  void read(const ConfigNode& node, const std::string& path, double& value) {
    if (!number(node, path, "a number")) return;
    if (const auto parsed = read_double(node.text); parsed && std::isfinite(*parsed)) {
      value = *parsed;
    } else {
      expected(node, path, "a finite number");
    }
  }

  void read(const ConfigNode& node, const std::string& path, std::string& value) {
    if (scalar(node, path, "text")) value = node.text;
  }

  template <class T>
  void read(const ConfigNode& node, const std::string& path, std::optional<T>& value) {
    if (node.kind == Kind::kNull) {
      value.reset();
      return;
    }
    if (node.kind == Kind::kUnresolved) {
      std::string ignored;
      read(node, path, ignored);
      return;
    }
    T inner{};
    read(node, path, inner);
    value = std::move(inner);
  }

  bool list(const ConfigNode& node, const std::string& path, const std::string& what) {
    if (node.kind == Kind::kList) return true;
    if (node.kind == Kind::kUnresolved) {
      scalar(node, path, what);
    } else if (node.kind != Kind::kNull) {
      expected(node, path, what);
    }
    return false;
  }

  void read(const ConfigNode& node, const std::string& path, std::vector<std::string>& value) {
    value.clear();
    if (!list(node, path, "a list of texts")) return;
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      read(node.children[i], path + "." + std::to_string(i), value.emplace_back());
    }
  }

  void read(const ConfigNode& node, const std::string& path,
            std::map<std::string, std::vector<std::string>>& value) {
    value.clear();
    if (node.kind == Kind::kNull) return;
    if (node.kind != Kind::kMap) return expected(node, path, "a map of lists");
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      read(node.children[i], path + "." + node.keys[i], value[node.keys[i]]);
    }
  }

  void read(const ConfigNode& node, const std::string& path, std::array<double, 2>& value) {
    if (node.kind == Kind::kUnresolved)
      return static_cast<void>(list(node, path, "a list of two numbers"));
    if (node.kind != Kind::kList || node.children.size() != 2)
      return expected(node, path, "a list of two numbers");
    for (std::size_t i = 0; i < 2; ++i)
      read(node.children[i], path + "." + std::to_string(i), value[i]);
  }

  void read(const ConfigNode& node, const std::string& path, optim::Duration& value) {
    constexpr const char* kWhat = "steps (1000), tokens (2e12T) or epochs (2ep)";
    if (!scalar(node, path, kWhat)) return;
    const auto duration = parse_duration(node.text);
    if (!duration) return expected(node, path, kWhat);
    value = *duration;
  }

  void read(const ConfigNode& node, const std::string& path, Precision& value) {
    const auto what = "one of " + precision_names();
    if (!scalar(node, path, what)) return;
    const auto named = precision_named(node.text);
    if (!named) return expected(node, path, what);
    value = *named;
  }

  void read(const ConfigNode& node, const std::string& path, RawJson& value) {
    if (!list(node, path, "a list")) return;
    value.text = to_json(node).dump();
  }

  /// A group of keys.
  template <class T>
  void read(const ConfigNode& node, const std::string& path, T& value) requires
      requires(Reader& reader) {
    visit_fields(value, reader);
  }
  {
    if (node.kind != Kind::kMap) return expected(node, path, "a map of keys");
    Reader inner(findings_, node, path + ".");
    visit_fields(value, inner);
    inner.report_other_keys(value);
  }

 public:
  /// Names every key of the map that is no field of `value`.
  template <class T>
  void report_other_keys(const T& value) {
    NameLister known;
    visit_fields(value, known);
    for (std::size_t i = 0; i < map_.keys.size(); ++i) {
      const auto& name = map_.keys[i];
      if (std::find(known.names.begin(), known.names.end(), name) != known.names.end()) continue;
      const auto path = prefix_ + name;
      if (const auto* foreign = find_foreign_key(path)) {
        report_foreign(map_.children[i], path, *foreign);
      } else {
        report_unknown(map_.children[i], path);
      }
    }
  }

 private:
  static bool says_nothing(const ConfigNode& node) {
    if (node.kind == Kind::kScalar) return read_bool(node.text) == false;
    return node.children.empty() && node.kind != Kind::kUnresolved;
  }

  static bool is_harmless(const ConfigNode& node, std::string_view harmless) {
    if (node.kind == Kind::kNull) return true;
    if (node.kind != Kind::kScalar) return false;
    for (const auto& word : split_words(harmless)) {
      const auto number = read_double(word);
      if (number && read_double(node.text) == number) return true;
      if (const auto truth = read_bool(word); truth && read_bool(node.text) == truth) return true;
    }
    return false;
  }

  void report_unknown(const ConfigNode& node, const std::string& path) {
    const auto meant = meant_by(path);
    std::string hint;
    if (meant) {
      const bool same_group = parent_of(*meant) == parent_of(path);
      hint = "; did you mean `" + (same_group ? leaf_of(*meant) : *meant) + "`?";
      findings_.unread.push_back(*meant);
    }
    findings_.errors.push_back(findings_.line(&node, path, "is not a key" + hint));
  }

  void report_foreign(const ConfigNode& node, const std::string& path, const ForeignKey& key) {
    const auto children = split_words(key.children);
    for (std::size_t i = 0; !children.empty() && node.kind == Kind::kMap && i < node.keys.size();
         ++i) {
      if (std::find(children.begin(), children.end(), node.keys[i]) != children.end()) continue;
      const auto close = nearest(node.keys[i], children);
      findings_.errors.push_back(
          findings_.line(&node.children[i], path + "." + node.keys[i],
                         "is not a key" + (close ? "; did you mean `" + *close + "`?" : "")));
    }
    if (key.harmless == "*") {
      if (key.reason.empty() || says_nothing(node)) return;
      findings_.notes.push_back(
          findings_.line(&node, path, "is not honoured: " + std::string(key.reason)));
    } else if (!is_harmless(node, key.harmless)) {
      findings_.blockers.push_back(findings_.line(&node, path,
                                                  "is " + shown(node) + ", but " +
                                                      std::string(key.reason) + ": expected " +
                                                      std::string(key.harmless)));
    }
  }

  Findings& findings_;
  const ConfigNode& map_;
  std::string prefix_;
};

bool bool_at(const ConfigDocument& document, const char* path, bool& value) {
  const auto* node = document.root.at_path(path);
  if (node == nullptr || node->kind != Kind::kScalar) return false;
  const auto parsed = read_bool(node->text);
  if (parsed) value = *parsed;
  return parsed.has_value();
}

/// Old keys that OLMo itself rewrites (ModelConfig.effective_n_kv_heads, scripts/train.py,
/// update_legacy_settings).
void read_legacy_keys(Findings& findings, TrainConfig& config) {
  bool flag = false;
  if (bool_at(findings.document, "optimizer.no_decay_norm_and_bias", flag)) {
    config.optimizer.decay_norm_and_bias = !flag;
    config.optimizer.decay_embeddings = !flag;
  }
  if (config.optimizer.name == "decoupled_lionw") config.optimizer.name = "lionw";
  if (!bool_at(findings.document, "model.multi_query_attention", flag)) return;
  const auto expected = flag ? std::int64_t{1} : config.model.n_heads;
  if (config.model.n_kv_heads.value_or(expected) != expected) {
    const auto* node = findings.document.root.at_path("model.multi_query_attention");
    findings.errors.push_back(findings.line(node, "model.multi_query_attention",
                                            "contradicts `model.n_kv_heads`: it stands for " +
                                                std::to_string(expected) + ", got " +
                                                std::to_string(*config.model.n_kv_heads)));
  } else if (flag) {
    config.model.n_kv_heads = 1;
  }
}

void require_yaml_keys(Findings& findings) {
  for (const auto& key : required_yaml_keys()) {
    if (findings.document.root.at_path(key.path) != nullptr) continue;
    findings.blockers.push_back(
        findings.line(nullptr, std::string(key.path),
                      "is not set; OLMo's default is " + std::string(key.default_value) +
                          ", which is not supported: give " + std::string(key.path) + "=" +
                          std::string(key.supported)));
  }
}

/// Evaluators are read by the evaluation; here only the names of their keys are checked.
void check_evaluators(Findings& findings) {
  const auto* list = findings.document.root.at_path("evaluators");
  if (list == nullptr || list->kind != Kind::kList) return;
  const std::vector<std::string> known = {"label", "type", "data", "device_eval_batch_size",
                                          "subset_num_batches"};
  for (std::size_t i = 0; i < list->children.size(); ++i) {
    const auto& item = list->children[i];
    const auto path = "evaluators." + std::to_string(i);
    if (item.kind != Kind::kMap || item.find("label") == nullptr) {
      findings.errors.push_back(findings.line(&item, path, "expects a map with the key `label`"));
      continue;
    }
    for (std::size_t k = 0; k < item.keys.size(); ++k) {
      if (std::find(known.begin(), known.end(), item.keys[k]) != known.end()) continue;
      const auto close = nearest(item.keys[k], known);
      findings.errors.push_back(
          findings.line(&item.children[k], path + "." + item.keys[k],
                        "is not a key" + (close ? "; did you mean `" + *close + "`?" : "")));
    }
  }
}

const ConfigNode& default_tree() {
  static const ConfigNode kTree = parse_json_config(to_json(TrainConfig{}).dump(), "defaults").root;
  return kTree;
}

/// Whether a problem may only follow from a key that could not be read.
bool is_consequence(const ConfigProblem& problem, const std::vector<std::string>& unread) {
  return std::any_of(unread.begin(), unread.end(), [&](const std::string& path) {
    return problem.key == path || problem.message.find("`" + path + "`") != std::string::npos;
  });
}

}  // namespace

LoadedConfig read_document(ConfigDocument document, bool is_yaml,
                           const std::vector<std::string>& overrides) {
  LoadedConfig loaded;
  Findings findings{document, apply_overrides(document, overrides), {}, {}, {}};
  for (auto& error : resolve_references(document, default_tree()))
    findings.errors.push_back(std::move(error));
  Reader reader(findings, document.root, "");
  visit_fields(loaded.config, reader);
  reader.report_other_keys(loaded.config);
  check_evaluators(findings);
  read_legacy_keys(findings, loaded.config);
  if (is_yaml) require_yaml_keys(findings);
  const auto located = [&](const ConfigProblem& problem) {
    return findings.line(document.root.at_path(problem.key), problem.key, problem.message);
  };
  for (const auto& problem : validate(loaded.config)) {
    if (is_consequence(problem, findings.unread)) continue;
    (problem.blocks_start ? findings.blockers : findings.errors).push_back(located(problem));
  }
  if (!findings.errors.empty())
    throw Error(ErrorKind::kUsage, joined_lines(sorted_texts(findings.errors)));
  loaded.notes = sorted_texts(std::move(findings.notes));
  loaded.blockers = sorted_texts(std::move(findings.blockers));
  return loaded;
}

LoadedConfig load_config(const std::filesystem::path& file,
                         const std::vector<std::string>& overrides) {
  return read_document(read_config_file(file), is_yaml_name(file.string()), overrides);
}

LoadedConfig parse_config(const std::string& text, const std::string& name,
                          const std::vector<std::string>& overrides) {
  return read_document(parse_config_document(text, name), is_yaml_name(name), overrides);
}

void require_no_blockers(const LoadedConfig& loaded) {
  if (!loaded.blockers.empty()) throw Error(ErrorKind::kUsage, joined_lines(loaded.blockers));
}

}  // namespace olmo::config
