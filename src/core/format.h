// Numbers and lists as text.
#pragma once

#include <array>
#include <cstdio>
#include <string>
#include <vector>

namespace olmo {

/// printf's conversions as a string; for numbers, whose length is bounded.
template <class... Args>
std::string formatted(const char* pattern, Args... args) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), pattern, args...);
  return text.data();
}

/// The words in one text.
inline std::string joined(const std::vector<std::string>& words, const char* separator = ", ") {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

}  // namespace olmo
