#include "report/comparability/side_by_side.h"

#include <algorithm>
#include <set>

#include "config/train_config.h"

namespace olmo::report {
namespace {

constexpr const char* kMachineFacts[] = {"host",   "architecture", "cpu",    "cores_usable",
                                         "kernel", "os",           "devices"};

using config::MismatchClass;

/// The computation that the settings of amp_bf16 stand for, where a config states them.
std::string form_of_bf16(const Settings& settings) {
  config::TrainConfig config;
  const auto precision = precision_named(shown_value(settings, "precision"));
  config.precision = precision.value_or(Precision::kAmpBf16);
  const auto stated = [&](const std::string& key) -> std::optional<std::string> {
    if (!settings.contains(key)) return std::nullopt;
    return shown_value(settings, key);
  };
  config.distributed_strategy = stated("distributed_strategy");
  config.fsdp->precision = stated("fsdp.precision");
  const bool pure = config.rounds_under_fsdp() && config.fsdp->precision == "pure";
  return pure ? "pure" : to_string(config.mixed_precision());
}

/// Whether a key that decides with `precision` what is rounded leaves the computation as it is: all
/// runs round alike or, where not all state the key, those that do round nothing.
bool rounds_nothing_else(const SettingLine& line, std::span<const StatedConfig> runs) {
  std::set<std::string> forms;
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (!line.untold || line.values[i]) forms.insert(form_of_bf16(runs[i].settings));
  return line.untold ? forms == std::set<std::string>{to_string(MixedPrecision::kNone)}
                     : forms.size() == 1;
}

/// Whether OLMo's fused loss trains with a z-loss that the config does not ask for.
bool hides_z_loss(const StatedConfig& run) {
  return is_set(run.settings, "fused_loss") && !is_set(run.settings, "softmax_auxiliary_loss");
}

/// What a difference in a key of the z-loss means beside the other ones.
void judge_z_loss(SettingLine& line, std::span<const StatedConfig> runs) {
  if (line.key == "fused_loss" && std::ranges::any_of(runs, hides_z_loss)) {
    line.mismatch = MismatchClass::kConfound;
    line.reason = "OLMo's fused loss adds the z-loss though `softmax_auxiliary_loss` is not set.";
  }
  const bool added = std::ranges::any_of(
      runs, [](const auto& run) { return is_set(run.settings, "softmax_auxiliary_loss"); });
  if (line.key == "auxiliary_loss_multiplier" && !added) {
    line.mismatch = MismatchClass::kBenign;
    line.reason = "Without `softmax_auxiliary_loss` nothing reads it.";
  }
}

/// Of an import a key that is not stated may have any value: then only stated ones are compared.
void compare_stated(SettingLine& line, std::span<const StatedConfig> runs) {
  const Settings* first = nullptr;
  bool all_state = true;
  line.differs = false;
  for (const auto& run : runs) {
    const auto found = run.settings.find(line.key);
    if (found == run.settings.end())
      all_state = false;
    else if (first == nullptr)
      first = &run.settings;
    else
      line.differs = line.differs || !same_value(first->at(line.key), found->second);
  }
  line.untold = !all_state && !line.differs;
}

}  // namespace

std::vector<SettingLine> side_by_side(std::span<const Settings> runs) {
  std::set<std::string> keys;
  for (const auto& settings : runs)
    for (const auto& [key, value] : settings) keys.insert(key);
  std::vector<SettingLine> lines;
  for (const auto& key : keys) {
    SettingLine line{.key = key, .values = {}};
    const auto first = runs.front().find(key);
    const bool in_first = first != runs.front().end();
    for (const auto& settings : runs) {
      const auto found = settings.find(key);
      const bool here = found != settings.end();
      line.differs =
          line.differs || here != in_first || (here && !same_value(first->second, found->second));
      line.values.push_back(here ? std::optional(shown_value(settings, key)) : std::nullopt);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

StatedConfig stated_config(const store::RecordedRun& run) {
  return {.settings = settings_of(run), .imported = run.imported};
}

std::vector<SettingLine> configs_side_by_side(std::span<const StatedConfig> runs) {
  std::vector<Settings> settings;
  for (const auto& run : runs) settings.push_back(run.settings);
  auto lines = side_by_side(settings);
  const bool imported = std::ranges::any_of(runs, &StatedConfig::imported);
  for (SettingLine& line : lines) {
    if (imported) compare_stated(line, runs);
    const auto rule = config::rule_of(line.key);
    line.mismatch = rule.mismatch;
    line.reason = rule.reason;
    if (rule.effect == config::Effect::kPrecision && rounds_nothing_else(line, runs)) {
      line.mismatch = MismatchClass::kBenign;
      line.reason = "Nothing else is rounded.";
    }
    judge_z_loss(line, runs);
  }
  return lines;
}

Settings machine_of(const std::string& environment, const std::string& where) {
  Settings facts = leaves_of(environment, where);
  std::erase_if(facts, [](const auto& fact) {
    const std::string part = fact.first.substr(0, fact.first.find('.'));
    return std::ranges::find(kMachineFacts, part) == std::end(kMachineFacts);
  });
  return facts;
}

}  // namespace olmo::report
