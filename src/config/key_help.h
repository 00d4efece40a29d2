#pragma once

#include <string>

#include "core/json.h"

namespace olmo::config {

/// What `train --help KEY` prints of a key or a group of keys. Throws Error(kUsage) for a path that
/// names none, with the nearest one.
std::string key_help(const std::string& path);

/// The table of all keys for configs/README.md, in Markdown.
std::string key_table_markdown();

/// JSON schema of a config file, for editors (configs/schema.json). It says no more than the table
/// of keys: ranges, and what concerns several keys, are told when a config is read.
Json config_schema();

}  // namespace olmo::config
