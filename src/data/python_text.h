#pragma once

#include <string>
#include <string_view>

namespace olmo::data {

// Python's string methods, for prompts that must match those of Python programs to the byte. Texts
// are well-formed UTF-8. Case mappings are Unicode's full ones (SpecialCasing.txt without locales),
// with utf8proc's tables beneath: newer than Python's for newly assigned letters.

/// `text` without white space at its ends, as str.strip(), str.lstrip(), str.rstrip(): Unicode's
/// white space and U+001C..U+001F.
std::string_view strip(std::string_view text);
std::string_view lstrip(std::string_view text);
std::string_view rstrip(std::string_view text);

/// str.lower(): sigma at a word's end becomes ς.
std::string lower(std::string_view text);

/// str.capitalize(): the first character in title case, the rest as lower().
std::string capitalize(std::string_view text);

/// str.replace(from, to): from left to right, in one pass. `from` is not empty.
std::string replace(std::string_view text, std::string_view from, std::string_view to);

/// re.sub(r"\[.*?\]", "", text): from each `[` to the next `]` of the same line.
std::string remove_brackets(std::string_view text);

}  // namespace olmo::data
