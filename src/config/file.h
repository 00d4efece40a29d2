#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "config/node.h"
#include "config/train_config.h"

namespace olmo::config {

/// Reads a config file: YAML if its suffix is `.yaml` or `.yml`, else JSON with comments. Throws
/// Error(kUsage) with one "FILE:LINE: …" line for each thing that is wrong with the syntax;
/// duplicate keys name both lines. Refused are files above kMaxConfigBytes, kMaxConfigNodes
/// (aliases count with all that they stand for) or kMaxConfigDepth.
ConfigDocument read_config_file(const std::filesystem::path& file);

/// The text of such a file, or of another that states what a user chose. Throws Error(kUsage) if it
/// cannot be read.
std::string read_config_text(const std::filesystem::path& file);

/// Whether a file of this name is read as YAML.
bool is_yaml_name(const std::string& name);

/// As read_config_file for a text; `name` stands for the file.
ConfigDocument parse_config_document(std::string_view text, const std::string& name);

/// JSON (RFC 8259) with `//` and `/* */` comments and trailing commas.
ConfigDocument parse_json_config(std::string_view text, const std::string& name);

/// One YAML document, as PyYAML's safe loader reads it: duplicate keys, other tags than `!!str` and
/// merge keys excepted.
ConfigDocument parse_yaml_config(std::string_view text, const std::string& name);

/// Sets `key.path=value` for each override; the value is YAML: a scalar, `[a, b]` or `{a: b}`. Keys
/// on the way are made; a number indexes a list. With dashes before it, as OLMo's launch scripts
/// have it, `--key-path` is `key_path=true`. Returns one line for each override that cannot be
/// applied: without "=" and dashes, with a value that is not YAML, or with a path through a value.
std::vector<ConfigMessage> apply_overrides(ConfigDocument& document,
                                           const std::vector<std::string>& overrides);

/// Replaces every `${…}` by its value, as OmegaConf and OLMo's resolvers do: `${key.path}` of a
/// single value, `${oc.env:NAME,default}`, `${path.choose:a,b}` (the first that exists),
/// `${path.glob:pattern}` (a list of files) and `${path.last_checkpoint:folder}`; arguments may
/// hold references. Within a text a value is written as Python writes it. `defaults` answers for
/// known keys that are not set. Returns one "FILE:LINE: …" line for each cycle, unknown reference
/// or syntax error, whose value becomes Kind::kInvalid; what depends on this machine (no such
/// variable or path) becomes Kind::kUnresolved.
std::vector<ConfigMessage> resolve_references(ConfigDocument& document, const ConfigNode& defaults);

/// load_config for a document that has been parsed. `is_yaml`: keys that are not set have OLMo's
/// defaults, so that those must be set whose default we do not have.
LoadedConfig read_document(ConfigDocument document, bool is_yaml,
                           const std::vector<std::string>& overrides);

/// The same for one that may have nothing but `model`, to which alone its values are held: a model
/// needs no data that fit it.
LoadedConfig read_model_document(ConfigDocument document, bool is_yaml);

}  // namespace olmo::config
