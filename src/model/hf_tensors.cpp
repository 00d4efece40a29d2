#include "model/hf_tensors.h"

#include <string_view>
#include <unordered_map>

#include "model/hf_names.h"

namespace olmo::model {

NamedTensors to_hf_names(const ModelConfig& config, const NamedTensors& tensors) {
  std::unordered_map<std::string_view, const at::Tensor*> by_name;
  for (const auto& [name, tensor] : tensors) by_name.emplace(name, &tensor);
  NamedTensors result;
  for (const auto& [olmo, parts] : hf_name_map(config)) {
    std::int64_t first = 0;
    for (const auto& [name, rows] : parts) {
      result.push_back({name, by_name.at(olmo)->narrow(0, first, rows)});
      first += rows;
    }
  }
  return result;
}

}  // namespace olmo::model
