#include "train/json_difference.h"

#include <nlohmann/json.hpp>

namespace olmo::train {
namespace {

void collect(const std::string& path, const Json& before, const Json& now,
             std::vector<std::string>& out) {
  if (before == now) return;
  if (!before.is_object() || !now.is_object()) {
    out.push_back("`" + path + "` was " + before.dump() + ", is " + now.dump());
    return;
  }
  const auto inner = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
  for (const auto& [key, value] : before.items())
    collect(inner(key), value, now.value(key, Json()), out);
  for (const auto& [key, value] : now.items()) {
    if (!before.contains(key)) collect(inner(key), Json(), value, out);
  }
}

}  // namespace

std::vector<std::string> differences(const Json& before, const Json& now) {
  std::vector<std::string> out;
  collect("", before, now, out);
  return out;
}

}  // namespace olmo::train
