// How the values of a config are read: a visitor of the table of keys, and what it finds wrong.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/keys.h"
#include "config/node.h"
#include "config/train_config.h"

namespace olmo::config {

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
  std::vector<ConfigMessage> errors = {};
  std::vector<ConfigMessage> notes = {};
  std::vector<ConfigMessage> blockers = {};
  std::vector<std::string> unread = {};  ///< keys that keep a default only because of an error
  std::vector<Misread> misread = {};

  /// A message about the key at `path`; `node` is its value, or nullptr if it is not set.
  [[nodiscard]] ConfigMessage line(const ConfigNode* node, const std::string& path,
                                   const std::string& what) const;
  /// Names each key of a map that is none of `names`, which blanks separate.
  void require_keys(const ConfigNode& map, const std::string& path, std::string_view names);
};

/// What a number has that could not be read.
enum class OnMisread {
  kDefault,
  kBeyondAnyRange,  ///< so that the checks say what its range is
};

/// Reads the values of one map into a struct: the visitor of visit_keys.
class GroupReader {
 public:
  /// `prefix` stands before the keys of the map, `rows` before those of their rows in the table.
  GroupReader(Findings& findings, const ConfigNode& map, std::string prefix, std::string rows,
              OnMisread on_misread = OnMisread::kDefault)
      : findings_(findings),
        map_(map),
        prefix_(std::move(prefix)),
        rows_(std::move(rows)),
        on_misread_(on_misread) {}

  template <class T>
  void operator()(const Key& key, T& value) {
    read_key(key.name, value);
  }
  void operator()(const Key& key, const Absent& absent);

  /// Reads a key that needs no row.
  template <class T>
  void read_key(const std::string& name, T& value) {
    if (const auto* node = map_.find(name)) read(*node, prefix_ + name, value);
  }

  /// Reads a group whose rows stand elsewhere in the table.
  template <class T>
  void read_group(const std::string& name, const std::string& rows, T& value) {
    if (const auto* node = map_.find(name)) read_rows(*node, prefix_ + name, rows, value);
  }

  /// Names every key of the map that has no row.
  void report_unknown_keys();

 private:
  void read(const ConfigNode& node, const std::string& path, bool& value);
  void read(const ConfigNode& node, const std::string& path, std::int64_t& value);
  void read(const ConfigNode& node, const std::string& path, std::uint64_t& value);
  void read(const ConfigNode& node, const std::string& path, double& value);
  void read(const ConfigNode& node, const std::string& path, std::string& value);
  void read(const ConfigNode& node, const std::string& path, std::vector<std::string>& value);
  void read(const ConfigNode& node, const std::string& path,
            std::map<std::string, std::vector<std::string>>& value);
  void read(const ConfigNode& node, const std::string& path, std::array<double, 2>& value);
  void read(const ConfigNode& node, const std::string& path, optim::Duration& value);
  void read(const ConfigNode& node, const std::string& path, Precision& value);
  void read(const ConfigNode& node, const std::string& path, RawJson& value);

  template <class T>
  void read(const ConfigNode& node, const std::string& path, std::optional<T>& value) {
    if (node.kind == ConfigNode::Kind::kNull) {
      value.reset();
      return;
    }
    if (node.kind == ConfigNode::Kind::kUnresolved) {
      std::string ignored;
      read(node, path, ignored);
      return;
    }
    T inner{};
    read(node, path, inner);
    value = std::move(inner);
  }

  /// A group of keys.
  template <class T>
  void read(const ConfigNode& node, const std::string& path, T& value) requires
      requires(GroupReader& reader) {
    visit_keys(value, reader);
  }
  { read_rows(node, path, rows_ + path.substr(prefix_.size()), value); }

  template <class T>
  void read_rows(const ConfigNode& node, const std::string& path, const std::string& rows,
                 T& value) {
    if (node.kind != ConfigNode::Kind::kMap) return expected(node, path, "a map of keys");
    GroupReader inner(findings_, node, path + ".", rows + ".", on_misread_);
    visit_keys(value, inner);
    inner.report_unknown_keys();
  }

  void expected(const ConfigNode& node, const std::string& path, const std::string& what);
  /// True if the node is a scalar; otherwise says that `what` was expected.
  bool scalar(const ConfigNode& node, const std::string& path, const std::string& what);
  bool list(const ConfigNode& node, const std::string& path, const std::string& what);
  /// Reads the text of a node that must not be a string of JSON.
  template <class T>
  void read_number(const ConfigNode& node, const std::string& path, const std::string& what,
                   const std::optional<T>& parsed, T& value);
  template <class T>
  void take(const ConfigNode& node, const std::string& path, const std::string& what,
            const std::optional<T>& parsed, T& value);
  /// `setting`: KEY=VALUE.
  [[nodiscard]] bool is_set(std::string_view setting) const;
  void report_unknown(const ConfigNode& node, const std::string& name);
  void report_absent(const ConfigNode& node, const Key& key, const Absent& absent);

  Findings& findings_;
  const ConfigNode& map_;
  std::string prefix_;
  std::string rows_;
  OnMisread on_misread_;
};

}  // namespace olmo::config
