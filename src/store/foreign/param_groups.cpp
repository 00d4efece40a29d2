#include "store/foreign/param_groups.h"

#include <algorithm>

namespace olmo::store {

std::map<std::string, std::string> names_of_numbers(const PickleValue& param_groups) {
  std::map<std::string, std::string> names;
  for (const auto* group : param_groups.items) {
    const auto *numbers = group->find("params"), *texts = group->find("param_names");
    if (numbers == nullptr || texts == nullptr) continue;
    for (std::size_t i = 0; i < std::min(numbers->items.size(), texts->items.size()); ++i) {
      const auto& number = *numbers->items[i];
      if (number.kind == PickleValue::Kind::kInteger)
        names[std::to_string(number.integer)] = texts->items[i]->text;
    }
  }
  return names;
}

}  // namespace olmo::store
