#include <algorithm>
#include <sstream>
#include <unordered_map>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "config/file.h"
#include "config/node.h"

namespace olmo::config {
namespace {

int line_of(const YAML::Mark& mark) { return mark.line + 1; }

/// Passes yaml-cpp's events on to a ConfigBuilder: its Node type would lose plain-versus-quoted,
/// duplicates and limits.
class YamlEvents : public YAML::EventHandler {
 public:
  explicit YamlEvents(ConfigBuilder& builder) : builder_(builder) {}

  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (take_key(mark, "null")) return;
    builder_.null(line_of(mark));
    after_value(line_of(mark), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (expects_key()) builder_.fail(line_of(mark), "has an alias as a key");
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end())
      builder_.fail(line_of(mark), "has an alias to a value that contains it");
    builder_.copy(line_of(mark), found->second);
    after_value(line_of(mark), YAML::NullAnchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    if (take_key(mark, value)) return;
    const bool plain = tag == "?" || tag.empty();
    if (!plain) check_tag(mark, tag, "str");
    builder_.scalar(line_of(mark), value,
                    plain ? ConfigNode::Style::kPlain : ConfigNode::Style::kQuoted);
    after_value(line_of(mark), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    begin(mark, tag, anchor, ConfigNode::Kind::kList, "seq");
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    begin(mark, tag, anchor, ConfigNode::Kind::kMap, "map");
  }
  void OnSequenceEnd() override { end(); }
  void OnMapEnd() override { end(); }

 private:
  struct Level {
    bool is_map;
    bool expects_key;
    int line;
    YAML::anchor_t anchor;
  };

  [[nodiscard]] bool expects_key() const { return !levels_.empty() && levels_.back().expects_key; }

  bool take_key(const YAML::Mark& mark, const std::string& text) {
    if (!expects_key()) return false;
    builder_.key(line_of(mark), text);
    levels_.back().expects_key = false;
    return true;
  }

  void begin(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
             ConfigNode::Kind kind, const char* own_tag) {
    if (expects_key())
      builder_.fail(line_of(mark), "has a list or a map as a key, or a bracket that is not closed");
    check_tag(mark, tag, own_tag);
    builder_.begin(line_of(mark), kind);
    const bool is_map = kind == ConfigNode::Kind::kMap;
    levels_.push_back({is_map, is_map, line_of(mark), anchor});
  }

  void end() {
    const Level level = levels_.back();
    levels_.pop_back();
    builder_.end();
    after_value(level.line, level.anchor);
  }

  void after_value(int line, YAML::anchor_t anchor) {
    if (!levels_.empty() && levels_.back().is_map) levels_.back().expects_key = true;
    if (anchor == YAML::NullAnchor) return;
    builder_.count(line, count_nodes(builder_.last()));
    anchors_[anchor] = builder_.last();
  }

  void check_tag(const YAML::Mark& mark, const std::string& tag, const std::string& own) const {
    if (tag.empty() || tag == "?" || tag == "!" || tag == "tag:yaml.org,2002:" + own) return;
    builder_.fail(line_of(mark),
                  "has the tag `" + tag.substr(0, 60) + "`, which a config may not have");
  }

  ConfigBuilder& builder_;
  std::vector<Level> levels_;
  std::unordered_map<YAML::anchor_t, ConfigNode> anchors_;
};

/// What is most often behind an error that the parser has no plain words for.
std::string indentation_hint(std::string_view text, int line) {
  std::istringstream lines{std::string(text)};
  std::string at;
  for (int i = 0; i < line; ++i) std::getline(lines, at);
  const auto indent = at.substr(0, std::min(at.find_first_not_of(" \t"), at.size()));
  if (indent.find('\t') != std::string::npos)
    return ": the line is indented with a tab; YAML takes spaces";
  return indent.empty() ? "" : ": keys of one level begin in the same column";
}

}  // namespace

ConfigDocument parse_yaml_config(std::string_view text, const std::string& name) {
  ConfigBuilder builder(name);
  YamlEvents events(builder);
  try {
    std::istringstream in{std::string(text)};
    YAML::Parser parser(in);
    parser.HandleNextDocument(events);
    if (parser) builder.fail(1, "holds more than one YAML document");
  } catch (const YAML::Exception& error) {
    const int line = error.mark.is_null() ? 1 : line_of(error.mark);
    builder.fail(line, "is not valid YAML (" + error.msg + ")" + indentation_hint(text, line));
  }
  return builder.finish();
}

}  // namespace olmo::config
