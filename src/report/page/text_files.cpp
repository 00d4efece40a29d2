#include "report/page/text_files.h"

#include "report/page/html.h"

namespace olmo::report::page {

std::string markdown_text(std::string_view text) {
  std::string out;
  for (const char c : shown(text, 1000)) {
    if (std::string_view("\\`*_[]|").find(c) != std::string_view::npos) out += '\\';
    out += c == '\n' || c == '\t' ? ' ' : c;
  }
  return out;
}

std::string csv_text(std::string_view text) {
  std::string out;
  if (!text.empty() && std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos)
    out = "'";
  out += text;
  if (out.find_first_of(",\"\n\r") == std::string::npos) return out;
  std::string quoted = "\"";
  for (const char c : out) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

}  // namespace olmo::report::page
