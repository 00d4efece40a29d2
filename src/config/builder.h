#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "config/node.h"

namespace olmo::config {

/// Makes a ConfigDocument from the events of a parser, keeping to the limits and refusing duplicate
/// keys. Duplicates are collected and thrown by finish(); everything else is thrown at once.
class ConfigBuilder {
 public:
  explicit ConfigBuilder(std::string name);

  void begin(int line, ConfigNode::Kind kind);  ///< a list or a map
  void end();
  void key(int line, std::string name);  ///< the next event is its value
  void scalar(int line, std::string text, ConfigNode::Style style);
  void null(int line);
  void copy(int line, const ConfigNode& node);  ///< an alias

  /// Adds to the number of values that the document may hold.
  void count(int line, std::size_t nodes);
  /// What was added last: a scalar, or the list or map that has just ended.
  [[nodiscard]] const ConfigNode& last() const;
  [[nodiscard]] ConfigDocument finish();
  /// Throws Error(kUsage) "FILE:LINE: what".
  [[noreturn]] void fail(int line, const std::string& what) const;

 private:
  struct Open {
    ConfigNode node;
    std::string key;
    int key_line = 0;
    std::unordered_map<std::string, int> key_lines;  ///< lines of the keys so far
  };

  void add(ConfigNode node);

  std::string name_;
  std::vector<Open> open_;  ///< the root's holder first
  std::vector<std::string> duplicates_;
  std::size_t nodes_ = 0;
};

/// Values in the tree, itself included.
std::size_t count_nodes(const ConfigNode& node);

}  // namespace olmo::config
