#include "report/comparability/settings.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include <nlohmann/json.hpp>

#include "config/key_table.h"
#include "core/error.h"
#include "core/files/json.h"
#include "core/files/recorded_json.h"
#include "core/text/text.h"
#include "report/comparability/same_model.h"

namespace olmo::report {
namespace {

/// A number and the unit behind it.
struct Quantity {
  double value = 0;
  std::string unit;
  bool operator==(const Quantity&) const = default;
};

std::optional<Quantity> quantity_in(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), '_'), text.end());  // 1_000, as YAML has it
  Quantity found;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), found.value);
  if (parsed.ec != std::errc()) return std::nullopt;
  found.unit = text.substr(static_cast<std::size_t>(parsed.ptr - text.data()));
  found.unit.erase(0, found.unit.find_first_not_of(' '));
  const bool is_unit =
      found.unit.size() <= 2 && std::all_of(found.unit.begin(), found.unit.end(),
                                            [](unsigned char c) { return std::isalpha(c) != 0; });
  return is_unit ? std::optional(found) : std::nullopt;
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

bool same(const Json& a, const Json& b) {
  if (a == b) return true;
  if (a.is_array() && b.is_array())
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), same);
  if (a.is_structured() || b.is_structured()) return false;
  const std::string x = text_of(a), y = text_of(b);
  const auto in_x = quantity_in(x), in_y = quantity_in(y);
  if (in_x && in_y) return *in_x == *in_y;
  return (a.is_boolean() || b.is_boolean()) && ascii_lower(x) == ascii_lower(y);
}

bool in_olmo_keys(const Settings& stated) {
  const auto known = std::count_if(stated.begin(), stated.end(), [](const auto& setting) {
    const auto& key = setting.first;
    return config::find_key(key) || config::find_key(key.substr(0, key.rfind('.')));
  });
  return 2 * known > std::ssize(stated);
}

/// The defaults of keys below `group` that `config` does not state.
void add_defaults(const Json& config, bool imported, const std::string& group, Settings& settings) {
  // A null that was written down is a value of its own where the default is none.
  std::string absent_group = "-";  // one that is null by default has no values by default
  for (const auto& row : config::key_table()) {
    if (row.null_by_default) absent_group = row.path + ".";
    // Where OLMo's default is not ours, only our own records have our default.
    const bool unknown = imported && row.key.olmo_default;
    const std::string value = config::unstated_value(row);
    if (value.empty() || unknown || row.path.starts_with(absent_group)) continue;
    if (!row.path.starts_with(group)) continue;
    const Json::json_pointer place(config::pointer_to(row.path));
    if (!config.contains(place) && value != "null") settings.emplace(row.path, value);
  }
}

}  // namespace

Settings leaves_of(const std::string& json, const std::string& where) {
  const Json parsed = recorded_object(json, where);
  Settings leaves;
  for_each_leaf(parsed, "", [&](const std::string& place, const Json& value) {
    const bool unresolved =
        value.is_string() && value.get_ref<const std::string&>().find("${") != std::string::npos;
    if (!value.is_null() && !value.is_object() && !unresolved) leaves[place] = value.dump();
  });
  return leaves;
}

Settings settings_of(const store::RecordedRun& run) {
  const std::string where = run.label + ": its config";
  Settings settings = leaves_of(run.config, where);
  if (settings.empty()) return settings;
  const Json parsed = recorded_json(run.config);
  const bool translated = run.imported && (parsed.contains(config::kTransformers) ||
                                           parsed.contains(config::kOlmoCore));
  if (!translated) {
    if (run.imported && !in_olmo_keys(settings)) return settings;
    const bool model_alone = run.imported && parsed.size() == 1 && parsed.contains("model");
    add_defaults(parsed, run.imported, model_alone ? "model." : "", settings);
    if (run.imported && !model_alone) settings["auxiliary_loss_multiplier"] = "0.0001";
  }
  tell_model_alike(settings);
  return settings;
}

std::optional<std::int64_t> count_of(const Settings& settings, const std::string& key) {
  const auto found = settings.find(key);
  if (found == settings.end()) return std::nullopt;
  const Json value = Json::parse(found->second);
  if (!value.is_number_integer() || value.get<std::int64_t>() < 1) return std::nullopt;
  return value.get<std::int64_t>();
}

bool is_set(const Settings& settings, const std::string& key) {
  const auto found = settings.find(key);
  return found != settings.end() && same_value(found->second, "true");
}

bool same_value(const std::string& a, const std::string& b) {
  return a == b || same(Json::parse(a), Json::parse(b));
}

std::string shown_value(const Settings& settings, const std::string& key) {
  const auto found = settings.find(key);
  return found == settings.end() ? kNotSet : text_of(Json::parse(found->second));
}

}  // namespace olmo::report
