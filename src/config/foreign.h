#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/train_config.h"

namespace olmo::config {

/// A key of OLMo's config classes that TrainConfig has no field for.
struct ForeignKey {
  std::string_view path;
  /// Values without effect, separated by spaces; "*" if none can change the result. Any other value
  /// stops a run.
  std::string_view harmless;
  std::string_view reason;    ///< why it is not honoured
  std::string_view children;  ///< names of its own keys, separated by spaces
};

const std::vector<ForeignKey>& foreign_keys();
const ForeignKey* find_foreign_key(std::string_view path);

/// Keys that OLMo's YAML files must set, since OLMo's default is something that we do not have.
struct RequiredKey {
  std::string_view path;
  std::string_view default_value;  ///< OLMo's
  std::string_view supported;      ///< what can be run
};
const std::vector<RequiredKey>& required_yaml_keys();

std::vector<std::string> split_words(std::string_view text);

}  // namespace olmo::config
