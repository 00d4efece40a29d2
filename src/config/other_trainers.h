#pragma once

#include <optional>
#include <string_view>

#include "config/key_table.h"

namespace olmo::config {

/// What a comparison makes of a key of Hugging Face's Trainer or of OLMo-core of which more is
/// known than that it may change the training: `transformers.output_dir`, or `output_dir` where the
/// config is kept as it is; `olmo_core.trainer.save_folder`. Nothing of any other key.
std::optional<KeyRule> rule_of_other_trainer(std::string_view path);

}  // namespace olmo::config
