// Fields of Markdown and of CSV files, safe against the text of hostile records.
#pragma once

#include <string>
#include <string_view>

namespace olmo::report::page {

/// One line of plain Markdown text: what would be a mark is escaped and nothing else, as people
/// read it in a terminal too; line ends become spaces.
std::string markdown_text(std::string_view text);
/// core's csv_cell; a text that a spreadsheet would run as a formula gets an apostrophe before it.
std::string csv_text(std::string_view text);

}  // namespace olmo::report::page
