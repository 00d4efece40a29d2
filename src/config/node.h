#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/files/json.h"

namespace olmo::config {

/// A config as it was written: a tree of untyped values, each with its line. Types are decided by
/// whoever reads a key, as OmegaConf does, so one tree serves JSON, YAML and the command line.
struct ConfigNode {
  enum class Kind {
    kNull,
    kScalar,
    kList,
    kMap,
    kUnresolved,  ///< a `${…}` that this machine cannot answer (no such variable, no such path);
                  ///< `text` says why
    kInvalid,     ///< an error has been reported for it
  };
  enum class Style {
    kPlain,       ///< may be a number, a boolean or text
    kQuoted,      ///< text of YAML; read as a number where a number is due, as OmegaConf does
    kJsonString,  ///< text of JSON: never a number
  };

  Kind kind = Kind::kNull;
  Style style = Style::kPlain;
  std::string text;               ///< of a scalar
  int line = 0;                   ///< of the key, or of the value in a list; 0 is the command line
  std::vector<std::string> keys;  ///< of a map, in the order of the file, without duplicates
  std::vector<ConfigNode> children;  ///< of a list or a map

  [[nodiscard]] const ConfigNode* find(std::string_view key) const;
  [[nodiscard]] ConfigNode* find(std::string_view key);
  /// Value under a dotted path such as "a.b.0"; nullptr if there is none.
  [[nodiscard]] const ConfigNode* at_path(std::string_view path) const;
};

/// Something to tell about a config, with the line that it belongs to: 0 is the command line, -1
/// the file as a whole.
struct ConfigMessage {
  int line = 0;
  std::string text;  ///< "FILE:LINE: `key` …"
};

/// The texts, by line; what belongs to the command line comes last.
std::vector<std::string> sorted_texts(std::vector<ConfigMessage> messages);

/// A tree and the file that it came from.
struct ConfigDocument {
  std::string name;  ///< of the file, for messages
  ConfigNode root;

  /// "FILE:LINE", "command line" for line 0, or "FILE" for -1.
  [[nodiscard]] std::string where(int line) const;
};

// Limits on what a config may hold. OLMo's largest official file has 310 KB, 4,000 values and 6
// levels.
inline constexpr std::size_t kMaxConfigBytes = std::size_t{16} << 20;
inline constexpr std::size_t kMaxConfigNodes = 100'000;
inline constexpr int kMaxConfigDepth = 64;

// Scalars as YAML 1.1 and OmegaConf read them; empty if the text is none. Underscores may group
// digits.
std::optional<bool> read_bool(std::string_view text);
std::optional<std::int64_t> read_int(
    std::string_view text);  ///< decimal, 0x, 0b, leading 0 for octal
std::optional<double> read_double(
    std::string_view text);  ///< 1e-4 is a number, as are .inf and 739_328
bool is_null_text(std::string_view text);

/// Position of the first byte that is not UTF-8, or is NUL.
std::optional<std::size_t> find_non_utf8(std::string_view text);

/// The tree as JSON, plain scalars typed by the rules above.
Json to_json(const ConfigNode& node);

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
