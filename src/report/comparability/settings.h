// The settings of a run as values, so that two ways of writing one are equal.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "store/runs/recorded_run.h"

namespace olmo::report {

/// Key path -> value as JSON text: `model.d_model` -> `8`. A null is no value.
using Settings = std::map<std::string, std::string>;

/// The leaves of a JSON object. Left out are nulls, and texts with a reference that another trainer
/// did not resolve. Throws Error(kDamaged) "WHERE: …" for a text that is not JSON.
Settings leaves_of(const std::string& json, const std::string& where);

/// The config of a run. Where it is ours, or another's in OLMo's keys, keys that it does not state
/// have the default of the table of keys (config/keys.h). Any other config names what its trainer
/// needs, and has defaults that we do not know. One that is imported and has nothing but `model`
/// tells nothing of the training; a model of transformers' (config::kTransformers) has no defaults
/// either. Of an import in OLMo's keys the weight of the z-loss is OLMo's own, which its trainer
/// takes whatever its config says. What two keys may tell stands under one (same_model.h).
Settings settings_of(const store::RecordedRun& run);

/// Whether a key is stated as true: `true`, "True".
bool is_set(const Settings& settings, const std::string& key);

/// A whole number from 1 on; nothing where the key is not stated or is something else.
std::optional<std::int64_t> count_of(const Settings& settings, const std::string& key);

/// Whether two values mean the same: 1 and 1.0, "4e-4" and 0.0004, "True" and true, also within
/// lists and with a unit behind ("2e3T" and "2000T").
bool same_value(const std::string& a, const std::string& b);

/// What stands for a value that is not stated.
inline constexpr char kNotSet[] = "not set";
/// A value for people: texts without quotes, absent ones as kNotSet.
std::string shown_value(const Settings& settings, const std::string& key);

}  // namespace olmo::report
