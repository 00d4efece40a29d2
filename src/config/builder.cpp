#include "config/builder.h"

#include "core/error.h"

namespace olmo::config {

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
    throw Error(ErrorKind::kUsage, joined_lines(duplicates_));
  }
  ConfigDocument document;
  document.name = name_;
  if (!open_.front().node.children.empty())
    document.root = std::move(open_.front().node.children.front());
  return document;
}

}  // namespace olmo::config
