// Text that is safe to show. Names of runs, tasks, tensors and files come from outside and may hold
// anything: commands for a terminal, signs that turn the order of letters round or cannot be seen,
// formulas, markup, bytes that are no text. Every printer takes them through here (as JSON: through
// core/json.h; on stdout and stderr: core/clean_stream.h).
#pragma once

#include <string>
#include <string_view>

namespace olmo {

/// Whether a code point shows what it is: no control character but line end and tab, none that
/// changes the direction of writing, none without width.
bool is_harmless(char32_t point);

/// Valid UTF-8 in which U+FFFD stands for what is_harmless refuses and for bytes that are no text.
std::string safe_text(std::string_view text);
/// safe_text on one line: spaces for line ends and tabs.
std::string safe_line(std::string_view text);

/// Text within HTML, attributes included.
std::string html_text(std::string_view text);
/// One line of plain Markdown: what would be a mark is escaped and nothing else, as people read it
/// in a terminal, too.
std::string markdown_text(std::string_view text);

/// A cell of CSV as RFC 4180 wants it: quoted where it holds a comma, a quote or a line end.
std::string csv_cell(std::string_view text);
/// csv_cell of a text: safe_text, with an apostrophe before what a spreadsheet would run as a
/// formula. Numbers stay numbers.
std::string csv_text(std::string_view text);

}  // namespace olmo
