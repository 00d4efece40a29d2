#pragma once

#include <string_view>

namespace olmo::test {

inline bool says(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace olmo::test
