#pragma once

#include <string>

namespace olmo::train {

/// A line of a plan for a person: what, and how much, in two columns.
inline std::string plan_row(const std::string& name, const std::string& value) {
  constexpr std::size_t kWidth = 28;
  return "  " + name + std::string(name.size() < kWidth ? kWidth - name.size() : 1, ' ') + value +
         "\n";
}

}  // namespace olmo::train
