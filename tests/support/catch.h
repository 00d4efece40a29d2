// Hides the header names of Catch2 v2 (Debian 12) and v3.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;

namespace Catch {
namespace Matchers {
/// v2's name for what v3 calls ContainsSubstring (its own Contains looks into ranges).
inline StringContainsMatcher Contains(const char* text) { return ContainsSubstring(text); }
inline StringContainsMatcher Contains(const std::string& text) { return ContainsSubstring(text); }
}  // namespace Matchers
using Matchers::Contains;
}  // namespace Catch
#else
#include <catch2/catch.hpp>
#endif
