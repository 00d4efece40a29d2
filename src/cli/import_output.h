// What `runs import` reads beside the logs, and what it says of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "import/steps.h"

namespace olmo::cli {

/// The config of another trainer, to be kept with its run.
struct ForeignConfig {
  std::string text = "{}";  ///< JSON
  std::uint64_t seed = 0;
  /// Of the model and of the training; absent: the config does not tell, or in words not known
  /// here.
  std::optional<std::int64_t> n_parameters, max_steps;
  bool translated = false;  ///< into OLMo's keys, out of another software's config
};

/// Reads JSON or, by its suffix, YAML (`.yaml`, `.yml`): OLMo's own, OLMo-core's, Hugging Face's,
/// or W&B's `config.yaml`, whose `{value: …}` around every key are taken off. A model of
/// transformers' or of OLMo-core's is told in OLMo's keys, so that it compares with other
/// trainers', and whatever else such a config has under config::kTransformers or config::kOlmoCore.
/// `${…}` stay as they are written. An empty path gives an empty config. Throws Error(kUsage)
/// "FILE:LINE: …".
ForeignConfig read_foreign_config(const std::string& path);

/// The same of a config that W&B's record told, as JSON text.
ForeignConfig foreign_config(const std::string& json);

/// Of W&B's `wandb-metadata.json`, what tells where the run was, as JSON text. Its number of GPUs
/// is kept as that of one node, for a run may have had many. An empty path gives "{}". Throws
/// Error(kInput).
std::string read_foreign_machine(const std::string& path);

/// Which column was taken as what, which are kept as metrics, which are ignored: lines of at most
/// 80 columns for people.
std::string mapping_text(const import::StepLog& log);
/// The same with every name.
nlohmann::ordered_json mapping_json(const import::StepLog& log);

/// What a reader of the run has to know: what is unknown, left out or superseded. One sentence
/// each.
std::vector<std::string> import_notes(const std::vector<import::StepLog>& logs,
                                      const import::StepLogOptions& options,
                                      import::FileOrder order, const LossMeaning& losses);

}  // namespace olmo::cli
