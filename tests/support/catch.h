// Hides the header names of Catch2 v2 (Debian 12) and v3.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <concepts>
#include <string>
#include <utility>

#include <catch2/catch_all.hpp>
using Catch::Approx;

namespace Catch {
namespace Matchers {
/// v2's name for what v3 calls ContainsSubstring. v3's own Contains looks into ranges and takes
/// whatever it is given: of the two, the one with a constraint is chosen for text.
template <class Text>
requires std::convertible_to<Text, std::string> StringContainsMatcher Contains(Text&& text) {
  return ContainsSubstring(std::forward<Text>(text));
}
}  // namespace Matchers
using Matchers::Contains;
using Matchers::EndsWith;
using Matchers::StartsWith;
}  // namespace Catch
#else
#include <catch2/catch.hpp>
#endif
