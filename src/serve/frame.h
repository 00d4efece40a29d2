// The frame of every page: head, navigation, style, and the script that keeps parts of it fresh.
#pragma once

#include <string>
#include <vector>

#include "serve/http.h"

namespace olmo::serve {

/// A link of the navigation.
struct Link {
  std::string text;
  std::string address;
  bool here = false;  ///< the page that is shown
};

struct Frame {
  std::string title;
  /// What is below /; a text.
  std::string heading = {};
  std::string kicker_html = {};
  std::vector<Link> tabs = {};
  /// Elements of the page with an id and the attribute `data-live` are fetched again every so many
  /// seconds while somebody looks; 0: never. The page is read again whole, so it needs no other
  /// address for its parts.
  int refresh_seconds = 0;
  bool wide = false;  ///< takes the window's width, as tables of many columns want it
  /// Names of scripts beside the common one, as served: "/curves.js".
  std::vector<std::string> scripts = {};
};

/// A whole document that takes style and script from this server.
std::string framed(const Frame& frame, const std::string& body_html);
/// A page that says one thing.
std::string sentence_page(const std::string& title, const std::string& sentence);

/// /style.css and /script.js.
Response style_response();
Response script_response(const std::string& script);
Response common_script_response();

}  // namespace olmo::serve
