// Settings of runs side by side: what `runs diff`, the gate of a comparison and the page of configs
// show.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/key_table.h"
#include "report/comparability/settings.h"
#include "store/runs/recorded_run.h"

namespace olmo::report {

/// A key with what each run has under it.
struct SettingLine {
  std::string key;
  std::vector<std::optional<std::string>> values;  ///< one a run, for people; nothing: not stated
  bool differs = false;                            ///< a run has another value than the first
  /// Whether it differs is not known: an import is among the runs, its trainer's defaults are not
  /// ours, a run does not state the key, and those that do agree.
  bool untold = false;
  /// What a difference means for a comparison of these runs.
  config::MismatchClass mismatch = config::MismatchClass::kBenign;
  std::string reason = {};
};

/// All keys of all runs, in their order. A key that a run does not state differs from one that it
/// states.
std::vector<SettingLine> side_by_side(std::span<const Settings> runs);

/// What a run's config states.
struct StatedConfig {
  Settings settings;
  bool imported = false;
};
StatedConfig stated_config(const store::RecordedRun& run);

/// The same of configs, with what a difference in each key means.
std::vector<SettingLine> configs_side_by_side(std::span<const StatedConfig> runs);

/// Of a recorded environment what tells one machine from another. Its other facts, such as the free
/// memory, change from minute to minute. Throws as leaves_of.
Settings machine_of(const std::string& environment, const std::string& where);

}  // namespace olmo::report
