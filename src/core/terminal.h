// The width of a terminal, and of text on it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace olmo {

/// Columns of the terminal behind a descriptor, as they are now; nothing if it is none (a file, a
/// pipe). A terminal that does not say has those of $COLUMNS, else 80.
std::optional<std::size_t> terminal_width(int descriptor);

/// Columns that a text of one line takes: two for the wide characters of East Asia and emoji, none
/// for combining marks. Bytes that are not UTF-8 take one each.
std::size_t display_width(std::string_view text);

/// Which end of a text says most.
enum class Keep { kStart, kEnd };

/// The text if it takes at most `width` columns, else as much of one end as fits beside an
/// ellipsis.
std::string shortened(std::string_view text, std::size_t width, Keep keep = Keep::kStart);

}  // namespace olmo
