#include "report/page/text_files.h"

#include <cctype>
#include <cstring>
#include <utility>

#include "core/csv_cell.h"
#include "report/page/html.h"

namespace olmo::report::page {
namespace {

bool is_word(std::string_view text, std::size_t at) {
  return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at])) != 0;
}

/// Whether Markdown would take the character as a mark, and not as text.
bool is_mark(std::string_view text, std::size_t at) {
  switch (text[at]) {
    case '\\':
    case '`':
    case '*':
    case '|':
      return true;
    case '_':  // emphasis, but not within a word
      return at == 0 || !is_word(text, at - 1) || !is_word(text, at + 1);
    case ']':  // the middle of a link or of its definition
      return at + 1 == text.size() || std::string_view("([:").find(text[at + 1]) != text.npos;
    default:
      return false;
  }
}

/// Quotes are markup in HTML's attributes alone.
std::string with_quotes(std::string text) {
  for (const auto& [entity, quote] : {std::pair{"&#39;", "'"}, std::pair{"&quot;", "\""}})
    for (auto at = text.find(entity); at != text.npos; at = text.find(entity, at))
      text.replace(at, std::strlen(entity), quote);
  return text;
}

}  // namespace

std::string markdown_text(std::string_view text) {
  const std::string safe = with_quotes(shown(text, 1000));
  std::string out;
  for (std::size_t i = 0; i < safe.size(); ++i) {
    if (is_mark(safe, i)) out += '\\';
    out += safe[i] == '\n' || safe[i] == '\t' ? ' ' : safe[i];
  }
  return out;
}

std::string csv_text(std::string_view text) {
  const bool formula =
      !text.empty() && std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos;
  return csv_cell(formula ? "'" + std::string(text) : std::string(text));
}

}  // namespace olmo::report::page
