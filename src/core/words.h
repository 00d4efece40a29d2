#pragma once

#include <string_view>
#include <vector>

namespace olmo {

/// Without blanks, tabs and carriage returns around it.
std::string_view trimmed(std::string_view text);
/// The words between blanks, tabs and carriage returns.
std::vector<std::string_view> split_words(std::string_view text);

}  // namespace olmo
