#include "report/page/html.h"

#include "core/safe_text.h"
#include "report/page/numbers.h"
#include "report/page/style.h"

namespace olmo::report::page {
namespace {

/// A larger JSON stays out of a page, which is at most 2 MB.
constexpr std::size_t kLargestJson = 700'000;

/// JSON cannot close the element that holds it: a `/` may be written `\/`.
std::string script_safe(const std::string& json) {
  std::string safe;
  safe.reserve(json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (json[i] != '<') {
      safe += json[i];
    } else if (i + 1 < json.size() && json[i + 1] == '/') {
      safe += "<\\/";
      ++i;
    } else {
      safe += "\\u003c";
    }
  }
  return safe;
}

}  // namespace

std::string escape(std::string_view text) { return html_text(text); }

std::string clip(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  std::size_t end = bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80) --end;
  return std::string(text.substr(0, end)) + "…";
}

std::string shown(std::string_view text, std::size_t bytes) { return escape(clip(text, bytes)); }

std::string element(const char* tag, const char* classes, const std::string& html) {
  std::string out = std::string("<") + tag;
  if (*classes != '\0') out += std::string(" class=\"") + classes + "\"";
  return out + ">" + html + "</" + tag + ">";
}

std::string paragraph(const std::string& html) { return element("p", "", html) + "\n"; }
std::string note(const std::string& html) { return element("p", "note", html) + "\n"; }
std::string code(std::string_view text) { return element("code", "", shown(text)); }

std::string list_of(const std::vector<std::string>& texts) {
  std::string items;
  for (std::size_t i = 0; i < std::min(texts.size(), kShownRows); ++i)
    items += element("li", "", shown(texts[i]));
  if (texts.size() > kShownRows)
    items +=
        element("li", "note",
                "and " + count(static_cast<std::int64_t>(texts.size() - kShownRows)) + " more");
  return element("ul", "", items) + "\n";
}

std::string folded(const std::string& summary_html, const std::string& html) {
  return "<details><summary>" + summary_html + "</summary>\n" + html + "</details>\n";
}

std::string section(const char* id, const std::string& title, const std::string& html) {
  return std::string("<section id=\"") + id + "\">\n<h2>" + escape(title) + "</h2>\n" + html +
         "</section>\n";
}

std::string absent(std::string_view reason) {
  std::string text = "not measured";
  if (!reason.empty()) text += ": " + shown(reason, 200);
  return element("span", "absent", text);
}

std::string side_mark(char side) {
  return element("b", side == 'B' ? "side side-b" : "side side-a", std::string(1, side));
}

void Table::row(const std::vector<std::string>& cells_html, const char* classes) {
  if (++rows_ > kShownRows) return;
  body_ += *classes == '\0' ? "<tr>" : std::string("<tr class=\"") + classes + "\">";
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const std::string attributes = (columns_[i].number ? std::string(" class=\"n\"") : "") +
                                   " data-h=\"" + escape(columns_[i].title) + "\"";
    body_ += i == 0 ? "<th scope=\"row\">" + cells_html.at(i) + "</th>"
                    : "<td" + attributes + ">" + cells_html.at(i) + "</td>";
  }
  body_ += "</tr>\n";
}

std::string Table::html() const {
  std::string head;
  for (const Column& column : columns_)
    head += std::string("<th scope=\"col\"") + (column.number ? " class=\"n\"" : "") + ">" +
            escape(column.title) + "</th>";
  std::string out = "<div class=\"scroll\"><table>\n<thead><tr>" + head + "</tr></thead>\n<tbody>" +
                    body_ + "</tbody>\n</table></div>\n";
  if (rows_ > kShownRows)
    out += note("and " + count(static_cast<std::int64_t>(rows_ - kShownRows)) + " more rows");
  return out;
}

std::string document(const std::string& title, const std::string& body_html,
                     const std::string& json) {
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>";
  out += escape(title) + "</title>\n<style>" + style_sheet() +
         "</style>\n</head>\n<body>\n<main>\n" + body_html + "</main>\n";
  if (json.size() <= kLargestJson)
    out += "<script type=\"application/json\" id=\"report\">" + script_safe(json) + "</script>\n";
  return out + "<script>" + hover_script() + "</script>\n</body>\n</html>\n";
}

}  // namespace olmo::report::page
