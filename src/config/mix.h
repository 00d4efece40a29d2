#pragma once

#include <string>
#include <vector>

#include "data/documents/mix.h"

namespace olmo::config {

/// What a config of Dolma's mixer asks for, and what of it has no effect here.
struct MixConfig {
  data::MixOptions options;
  bool dry_run = false;
  std::vector<std::string> notes;
};

/// Reads such a config, YAML or JSON with comments, and applies `key.path=value`. References
/// `${…}` are those of training configs. Throws Error(kUsage) with one "FILE:LINE: …" line for
/// each thing that is wrong: unknown keys (the nearest one is named), values of another type,
/// paths that are no JSONPath, and `syntax: jq`.
MixConfig read_mix_config(const std::string& file, const std::vector<std::string>& overrides);

}  // namespace olmo::config
