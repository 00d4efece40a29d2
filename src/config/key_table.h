#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/json.h"

namespace olmo::config {

/// What a key does to a training.
enum class Effect {
  kIdentity,   ///< decides what is computed: it belongs to the experiment digest
  kPlacement,  ///< says where something lies or what computes: the same bits
  kLimit,      ///< decides whether a process starts and when it ends: the same bits
  kRecord,     ///< decides what is kept and shown: the same bits
  kIgnored,    ///< accepted and not honoured, with a note
  kRefused,    ///< one value can be run, any other keeps a run from starting
  kPrecision,  ///< decides, with `precision`, what is rounded to bf16: the experiment digest holds
               ///< what follows from them (TrainConfig::mixed_precision), in fp32 nothing
};

/// What it means for a comparison of two runs that they differ in something.
enum class MismatchClass {
  kFatal,     ///< the runs cannot be compared
  kConfound,  ///< declared: the verdict is capped at CONSISTENT
  kBenign,    ///< cannot change the result, or is what is being compared
};

struct KeyRule {
  Effect effect;
  MismatchClass mismatch;
  const char* reason;  ///< for the class: one sentence
};

/// One row of the table of keys (config/keys.h).
struct Key {
  const char* name;
  KeyRule rule;
  /// One sentence without its full stop; of a key that we do not honour, why.
  const char* help;
  std::span<const std::string_view> words = {};  ///< the values that a text may have
  /// OLMo's own default, where it is something that we lack: OLMo's YAML files must set the key.
  const char* olmo_default = nullptr;
  /// The key came after digests had been recorded: the experiment digest leaves its default out, so
  /// that the digests of older runs stay as they are.
  bool is_later = false;
};

/// A key that older runs did not have.
constexpr Key later(Key key) {
  key.is_later = true;
  return key;
}

/// Stands where a key of OLMo's has no member in our structs.
struct Absent {
  /// Values that need no word, separated by spaces: of a refused key those that can be run, of an
  /// ignored one those that mean what happens anyway. "*": any, the key is read into others.
  std::string_view accepted = "";
  std::string_view children = "";   ///< names of a group's keys, separated by spaces
  std::string_view only_with = "";  ///< KEY=VALUE: refused only with this setting
  /// The key had a member once: the experiment digest still holds its default (JSON), so that the
  /// digests of older runs stay as they are.
  std::string_view in_digest = "";
};

/// A row with what its member says. Types, defaults and schemas are those of the structs.
struct KeyRow {
  std::string path;  ///< "model.n_heads"
  Key key;
  std::optional<Absent> absent = {};
  bool group = false;              ///< holds keys of its own
  bool null_by_default = false;    ///< a group that is not there unless it is given
  std::string type = {};           ///< "integer or null"; empty where there is no member
  std::string default_value = {};  ///< JSON; empty for a group, and where there is no member
  std::string schema = {};         ///< JSON schema of the value; empty for a group
};

/// Where an imported config of a model of transformers', and one of OLMo-core's, has what its
/// `model`, which is in OLMo's keys and complete but for the draw of the weights, does not tell.
inline constexpr const char *kTransformers = "transformers", *kOlmoCore = "olmo_core";

/// Every key and every group, in the order of OLMo's files.
const std::vector<KeyRow>& key_table();
/// Nullptr if there is no such key.
const KeyRow* find_key(std::string_view path);
/// "model.n_heads" as a JSON pointer: "/model/n_heads".
std::string pointer_to(std::string_view path);
/// What a key is that a config of ours does not state, as JSON: its default, or the one value that
/// can be run, as `model.alibi` has it. Empty where neither tells it.
std::string unstated_value(const KeyRow& row);
/// A config of ours (JSON) that also states what needs no word here, where OLMo's default is
/// another: `model.attention_dropout` and its like are 0.
std::string with_unstated_keys(const std::string& config);
/// The key that was meant by an unknown path: the same name elsewhere, else a similar one of the
/// same group, else a similar one anywhere.
std::optional<std::string> nearest_key(const std::string& path);

/// What a comparison makes of a key: the rule of its row, else of the nearest group above it, else
/// of another trainer's key (config/other_trainers.h).
/// Unknown keys are confounds: better named than missed.
KeyRule rule_of(std::string_view path);

/// Whether it tells how initial weights are drawn, and nothing else.
bool is_of_drawing(std::string_view path);

/// What `train --help KEY` prints of a key or a group of keys. Throws Error(kUsage) for a path that
/// names none, with the nearest one.
std::string key_help(const std::string& path);

/// The table of all keys for configs/README.md, in Markdown.
std::string key_table_markdown();

/// JSON schema of a config file, for editors (configs/schema.json). It says no more than the table
/// of keys: ranges, and what concerns several keys, are told when a config is read.
Json config_schema();

}  // namespace olmo::config
