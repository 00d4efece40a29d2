#include <algorithm>
#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "config/file.h"
#include "config/keys.h"
#include "config/train_config.h"
#include "core/error.h"
#include "core/text/text.h"

namespace olmo::config {
namespace {

using Kind = ConfigNode::Kind;

/// A number that could not be read.
struct Misread {
  std::string path;
  int line;
  std::string expected;  ///< "an integer"
  std::string got;
};

/// What has been found so far.
struct Findings {
  const ConfigDocument& document;
  std::vector<ConfigMessage> errors;
  std::vector<ConfigMessage> notes;
  std::vector<ConfigMessage> blockers;
  std::vector<std::string> unread;  ///< keys that keep a default only because of an error
  std::vector<Misread> misread;

  /// A message about the key at `path`; `node` is its value, or nullptr if it is not set.
  [[nodiscard]] ConfigMessage line(const ConfigNode* node, const std::string& path,
                                   const std::string& what) const {
    const int number = node == nullptr ? -1 : node->line;
    return {number, document.where(number) + ": `" + path + "` " + what};
  }

  /// Names each key of a map that is none of `names`, which blanks separate.
  void require_keys(const ConfigNode& map, const std::string& path, std::string_view names) {
    const auto words = split_words(names);
    const std::vector<std::string> known(words.begin(), words.end());
    for (std::size_t i = 0; i < map.keys.size(); ++i) {
      if (std::find(known.begin(), known.end(), map.keys[i]) != known.end()) continue;
      const auto close = nearest(map.keys[i], known);
      errors.push_back(line(&map.children[i], path + "." + map.keys[i],
                            "is not a key" + (close ? "; did you mean `" + *close + "`?" : "")));
    }
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

/// What a number has that could not be read.
enum class OnMisread {
  kDefault,
  kBeyondAnyRange,  ///< so that the checks say what its range is
};

/// Reads the values of one map into a struct: the visitor of visit_keys.
class GroupReader {
 public:
  GroupReader(Findings& findings, const ConfigNode& map, std::string prefix,
              OnMisread on_misread = OnMisread::kDefault)
      : findings_(findings), map_(map), prefix_(std::move(prefix)), on_misread_(on_misread) {}

  template <class T>
  void operator()(const Key& key, T& value) {
    if (const auto* node = map_.find(key.name)) read(*node, prefix_ + key.name, value);
  }

  void operator()(const Key& key, const Absent& absent) {
    const auto* node = map_.find(key.name);
    if (node == nullptr) return;
    if (!absent.children.empty() && node->kind == Kind::kMap)
      findings_.require_keys(*node, prefix_ + key.name, absent.children);
    report_absent(*node, key, absent);
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

  /// Reads the text of a node that must not be a string of JSON.
  template <class T>
  void read_number(const ConfigNode& node, const std::string& path, const std::string& what,
                   const std::optional<T>& parsed, T& value) {
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
  void take(const ConfigNode& node, const std::string& path, const std::string& what,
            const std::optional<T>& parsed, T& value) {
    if (!parsed) return expected(node, path, what);
    value = *parsed;
  }

  void read(const ConfigNode& node, const std::string& path, bool& value) {
    constexpr const char* kWhat = "true or false";
    if (!scalar(node, path, kWhat)) return;
    const bool is_text = node.style == ConfigNode::Style::kJsonString;
    take(node, path, kWhat, is_text ? std::nullopt : read_bool(node.text), value);
  }

  void read(const ConfigNode& node, const std::string& path, std::int64_t& value) {
    read_number(node, path, "an integer", read_int(node.text), value);
  }

  void read(const ConfigNode& node, const std::string& path, std::uint64_t& value) {
    constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
    const auto parsed = read_int(node.text);
    read_number(
        node, path, "an integer from 0 to " + std::to_string(kMost),
        parsed && *parsed >= 0 ? std::optional(static_cast<std::uint64_t>(*parsed)) : std::nullopt,
        value);
  }

  void read(const ConfigNode& node, const std::string& path, double& value) {
    const auto parsed = read_double(node.text);
    read_number(node, path, "a finite number",
                parsed && std::isfinite(*parsed) ? parsed : std::nullopt, value);
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
    if (scalar(node, path, kWhat)) take(node, path, kWhat, parse_duration(node.text), value);
  }

  void read(const ConfigNode& node, const std::string& path, Precision& value) {
    const auto what = "one of " + precision_names();
    if (scalar(node, path, what)) take(node, path, what, precision_named(node.text), value);
  }

  void read(const ConfigNode& node, const std::string& path, RawJson& value) {
    if (!list(node, path, "a list")) return;
    value.text = to_json(node).dump();
  }

  /// A group of keys.
  template <class T>
  void read(const ConfigNode& node, const std::string& path, T& value) requires
      requires(GroupReader& reader) {
    visit_keys(value, reader);
  }
  {
    if (node.kind != Kind::kMap) return expected(node, path, "a map of keys");
    GroupReader inner(findings_, node, path + ".", on_misread_);
    visit_keys(value, inner);
    inner.report_unknown_keys();
  }

 public:
  /// Names every key of the map that has no row.
  void report_unknown_keys() {
    for (std::size_t i = 0; i < map_.keys.size(); ++i) {
      const auto path = prefix_ + map_.keys[i];
      if (map_.keys[i].find('.') != std::string::npos || find_key(path) == nullptr)
        report_unknown(map_.children[i], path);
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
    for (const auto word : split_words(harmless)) {
      if (node.text == word) return true;
      const auto number = read_double(word);
      if (number && read_double(node.text) == number) return true;
      if (const auto truth = read_bool(word); truth && read_bool(node.text) == truth) return true;
    }
    return false;
  }

  /// `what`: a key that is not null, or KEY=VALUE.
  [[nodiscard]] bool is_set(std::string_view what) const {
    const auto equals = what.find('=');
    const auto* node = findings_.document.root.at_path(what.substr(0, equals));
    if (node == nullptr || node->kind == Kind::kNull) return false;
    return equals == std::string_view::npos || node->text == what.substr(equals + 1);
  }

  void report_unknown(const ConfigNode& node, const std::string& path) {
    const auto meant = nearest_key(path);
    std::string hint;
    if (meant) {
      const auto name = meant->rfind('.') + 1;  // 0 at the top
      const bool same_group = meant->substr(0, name) == prefix_;
      hint = "; did you mean `" + (same_group ? meant->substr(name) : *meant) + "`?";
      findings_.unread.push_back(*meant);
    }
    findings_.errors.push_back(findings_.line(&node, path, "is not a key" + hint));
  }

  void report_absent(const ConfigNode& node, const Key& key, const Absent& absent) {
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

  Findings& findings_;
  const ConfigNode& map_;
  std::string prefix_;
  OnMisread on_misread_;
};

/// Numbers that could not be read, each with the range that the checks have for it.
void report_misread(Findings& findings) {
  if (findings.misread.empty()) return;
  std::map<std::string, std::string> ranges;
  TrainConfig beyond;
  Findings ignored{findings.document, {}, {}, {}, {}, {}};
  GroupReader reader(ignored, findings.document.root, "", OnMisread::kBeyondAnyRange);
  visit_keys(beyond, reader);
  for (const auto& [key, message, blocks] : validate(beyond))
    ranges.emplace(key, ", which " + message.substr(0, message.rfind(", got ")));
  for (const auto& [path, line, expected, got] : findings.misread)
    findings.errors.push_back({line, findings.document.where(line) + ": `" + path + "` expects " +
                                         expected + ranges[path] + ", got " + got});
}

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
  if (bool_at(findings.document, "activation_checkpointing", flag)) {
    config.activation_checkpointing.reset();
    if (flag) config.activation_checkpointing = "whole_layer";
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

void require_yaml_keys(Findings& findings, const TrainConfig& config) {
  for (const auto& row : key_table()) {
    if (row.key.olmo_default == nullptr || findings.document.root.at_path(row.path) != nullptr)
      continue;
    const bool matters = config.rounds_under_fsdp() && config.fsdp;
    if (row.key.rule.effect == Effect::kPrecision && !matters) continue;
    std::string ours(row.absent ? row.absent->accepted : row.default_value);
    std::erase(ours, '"');
    findings.blockers.push_back(
        findings.line(nullptr, row.path,
                      "is not set; OLMo's default is " + std::string(row.key.olmo_default) +
                          ", which is not supported: give " + row.path + "=" + ours));
  }
}

/// OLMo calls its loss without the multiplier of its config (olmo/train.py, Trainer.model_forward).
void note_z_loss(Findings& findings, const TrainConfig& config) {
  constexpr double kOlmos = 1e-4;
  constexpr const char* kKey = "auxiliary_loss_multiplier";
  const auto& multiplier = config.auxiliary_loss_multiplier;
  if (!config.softmax_auxiliary_loss || !multiplier || *multiplier == kOlmos) return;
  findings.notes.push_back(findings.line(findings.document.root.at_path(kKey), kKey,
                                         "is " + number_text(*multiplier) +
                                             ", and is taken; OLMo's own trainer takes 1e-4, "
                                             "whatever is set: give " +
                                             kKey + "=1e-4 to train as it does"));
}

/// Evaluators are read by the evaluation; here only the names of their keys are checked.
void check_evaluators(Findings& findings) {
  const auto* list = findings.document.root.at_path("evaluators");
  if (list == nullptr || list->kind != Kind::kList) return;
  for (std::size_t i = 0; i < list->children.size(); ++i) {
    const auto& item = list->children[i];
    const auto path = "evaluators." + std::to_string(i);
    if (item.kind != Kind::kMap || item.find("label") == nullptr) {
      findings.errors.push_back(findings.line(&item, path, "expects a map with the key `label`"));
      continue;
    }
    findings.require_keys(item, path, "label type data device_eval_batch_size subset_num_batches");
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
  Findings findings{document, apply_overrides(document, overrides), {}, {}, {}, {}};
  for (auto& error : resolve_references(document, default_tree()))
    findings.errors.push_back(std::move(error));
  GroupReader reader(findings, document.root, "");
  visit_keys(loaded.config, reader);
  reader.report_unknown_keys();
  report_misread(findings);
  check_evaluators(findings);
  read_legacy_keys(findings, loaded.config);
  note_z_loss(findings, loaded.config);
  if (is_yaml) require_yaml_keys(findings, loaded.config);
  const auto located = [&](const ConfigProblem& problem) {
    return findings.line(document.root.at_path(problem.key), problem.key, problem.message);
  };
  for (const auto& problem : validate(loaded.config)) {
    if (is_consequence(problem, findings.unread)) continue;
    (problem.blocks_start ? findings.blockers : findings.errors).push_back(located(problem));
  }
  if (!findings.errors.empty())
    throw Error(ErrorKind::kUsage, joined(sorted_texts(findings.errors), "\n"));
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
  if (!loaded.blockers.empty()) throw Error(ErrorKind::kUsage, joined(loaded.blockers, "\n"));
}

}  // namespace olmo::config
