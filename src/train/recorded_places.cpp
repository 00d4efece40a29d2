#include "train/recorded_places.h"

#include <filesystem>
#include <set>
#include <string>

#include "core/files/input_file.h"

namespace olmo::train {
namespace {

/// The recorded file that was given as `relative`; empty unless there is exactly one.
std::string recorded_place(const std::string& relative,
                           std::span<const store::InputRecord> inputs) {
  std::set<std::string> found;
  for (const auto& input : inputs)
    if (input.path.ends_with("/" + relative)) found.insert(input.path);
  return found.size() == 1 ? *found.begin() : "";
}

}  // namespace

void use_recorded_places(data::DataConfig& config, std::span<const store::InputRecord> inputs) {
  for (std::string* path : config.named_files()) {
    if (std::filesystem::path(*path).is_absolute() || is_there(*path)) continue;
    if (const auto place = recorded_place(*path, inputs); !place.empty()) *path = place;
  }
}

}  // namespace olmo::train
