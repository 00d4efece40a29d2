#include "cli/import_config.h"

#include <array>

#include <nlohmann/json.hpp>

#include "config/file.h"
#include "core/error.h"
#include "core/json.h"

namespace olmo::cli {
namespace {

/// W&B wraps each key as `{desc: …, value: …}`.
bool is_wrapped(const Json& value) {
  if (!value.is_object() || !value.contains("value")) return false;
  return value.size() == 1 || (value.size() == 2 && value.contains("desc"));
}

/// The keys that are W&B's own are left out.
Json unwrapped(const Json& config) {
  Json result = Json::object();
  for (const auto& [key, value] : config.items()) {
    if (key == "wandb_version" || key == "_wandb") continue;
    result[key] = is_wrapped(value) ? value["value"] : value;
  }
  return result;
}

bool is_of_wandb(const Json& config) {
  std::size_t wrapped = 0;
  for (const auto& [key, value] : config.items()) wrapped += is_wrapped(value);
  return wrapped > 0 && (config.contains("wandb_version") || 2 * wrapped > config.size());
}

}  // namespace

ForeignConfig read_foreign_config(const std::string& path) {
  if (path.empty()) return {};
  Json config = config::to_json(config::read_config_file(path).root);
  if (is_of_wandb(config)) config = unwrapped(config);
  const auto seed = config.find("seed");
  const bool has_seed = seed != config.end() && seed->is_number_integer() && *seed >= 0;
  return {json_text(config), has_seed ? seed->get<std::uint64_t>() : 0};
}

std::string read_foreign_machine(const std::string& path) {
  if (path.empty()) return "{}";
  const Json metadata = read_json_file(path);
  if (!metadata.is_object())
    throw Error(ErrorKind::kInput, path + ": W&B's metadata must be a JSON object");
  constexpr std::array<std::pair<const char*, const char*>, 6> kFacts = {
      {{"host", "host"},
       {"os", "os"},
       {"gpu", "gpu"},
       {"gpu_count", "gpus_of_a_node"},
       {"python", "python"},
       {"startedAt", "started_utc"}}};
  Json machine = Json::object();
  for (const auto& [theirs, ours] : kFacts) {
    const auto found = metadata.find(theirs);
    if (found != metadata.end() && found->is_primitive()) machine[ours] = *found;
  }
  return json_text(machine);
}

}  // namespace olmo::cli
