#include "serve/frame.h"

#include "page/browser/files.h"
#include "page/html.h"

namespace olmo::serve {
namespace {

std::string links(const std::vector<Link>& tabs) {
  if (tabs.empty()) return {};
  std::string html;
  for (const Link& tab : tabs)
    html += "<a href=\"" + page::escape(tab.address) + "\"" +
            (tab.here ? " aria-current=\"page\"" : "") + ">" + page::escape(tab.text) + "</a>";
  return "<nav class=\"tabs\" aria-label=\"Parts of the run\">" + html + "</nav>\n";
}

}  // namespace

std::string framed(const Frame& frame, const std::string& body_html) {
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>" +
      page::shown(frame.title, 200) +
      "</title>\n<link rel=\"icon\" href=\"data:,\">\n<link rel=\"stylesheet\" "
      "href=\"/style.css\">\n</head>\n<body" +
      (frame.refresh_seconds > 0 ? " data-refresh=\"" + std::to_string(frame.refresh_seconds) + "\""
                                 : std::string()) +
      ">\n<div class=\"bar\"><a href=\"/\">Runs</a><span id=\"connection\" role=\"status\"></span>"
      "</div>\n<main" +
      (frame.wide ? " class=\"wide\"" : "") + ">\n";
  if (!frame.heading.empty())
    html += "<header>" +
            (frame.kicker_html.empty() ? "" : page::element("p", "kicker", frame.kicker_html)) +
            "<h1>" + page::shown(frame.heading, 200) + "</h1></header>\n";
  html += links(frame.tabs) + body_html + "</main>\n<script src=\"/script.js\"></script>\n";
  for (const auto& script : frame.scripts)
    html += "<script src=\"" + page::escape(script) + "\"></script>\n";
  return html + "</body>\n</html>\n";
}

std::string sentence_page(const std::string& title, const std::string& sentence) {
  return framed({.title = title, .heading = title}, page::paragraph(page::shown(sentence, 2000)));
}

Response style_response() {
  Response response = html_response(std::string(page::style_css()) + page::site_css());
  response.content_type = "text/css; charset=utf-8";
  return response;
}

Response script_response(const std::string& script) {
  Response response = html_response(script);
  response.content_type = "text/javascript; charset=utf-8";
  return response;
}

Response common_script_response() {
  // Before the other scripts give their parts buttons: what the page was like.
  constexpr char kBefore[] =
      "'use strict';\n"
      "for (const part of document.querySelectorAll('[data-live]')) part.before = "
      "part.outerHTML;\n";
  return script_response(kBefore + page::script() + page::site_js());
}

}  // namespace olmo::serve
