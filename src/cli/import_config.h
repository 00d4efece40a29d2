#pragma once

#include <cstdint>
#include <string>

namespace olmo::cli {

/// The config of another trainer, to be kept with its run.
struct ForeignConfig {
  std::string text = "{}";  ///< JSON
  std::uint64_t seed = 0;
};

/// Reads JSON or, by its suffix, YAML (`.yaml`, `.yml`): OLMo's own, Hugging Face's, or W&B's
/// `config.yaml`, whose `{value: …}` around every key are taken off. `${…}` stay as they are
/// written. An empty path gives an empty config. Throws Error(kUsage) "FILE:LINE: …".
ForeignConfig read_foreign_config(const std::string& path);

/// Of W&B's `wandb-metadata.json`, what tells where the run was, as JSON text. Its number of GPUs
/// is kept as that of one node, for a run may have had many. An empty path gives "{}". Throws
/// Error(kInput).
std::string read_foreign_machine(const std::string& path);

}  // namespace olmo::cli
