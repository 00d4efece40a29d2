#include "serve/frame.h"

#include "serve/site_pages.h"
#include "support/catch.h"
#include "support/says.h"

namespace serve = olmo::serve;
using olmo::test::says;

TEST_CASE("titles, headings, tabs and sentences are text, whatever they hold", "[serve]") {
  const std::string hostile = "</title><script>alert(1)</script>\"'&";
  const auto html = serve::framed({.title = hostile,
                                   .heading = hostile,
                                   .tabs = {{.text = hostile, .address = "/run/\"><script>"}}},
                                  "<p>body</p>") +
                    serve::sentence_page(hostile, hostile);
  CHECK_FALSE(says(html, "<script>"));
  CHECK(says(html, "&lt;script&gt;alert(1)"));
  CHECK(says(html, "<p>body</p>"));
}

TEST_CASE("the tab that is shown is marked", "[serve]") {
  const auto html =
      serve::framed({.title = "a",
                     .tabs = {{.text = "Overview", .address = "/run/1"},
                              {.text = "Curves", .address = "/run/1/curves", .here = true}}},
                    "");
  CHECK(says(html, "<a href=\"/run/1\">Overview</a>"));
  CHECK(says(html, "<a href=\"/run/1/curves\" aria-current=\"page\">Curves</a>"));
}

TEST_CASE("a page is fetched again only if it says so", "[serve]") {
  CHECK_FALSE(says(serve::framed({.title = "a"}, ""), "data-refresh"));
  CHECK(says(serve::framed({.title = "a", .refresh_seconds = 5}, ""), "data-refresh=\"5\""));
}

TEST_CASE("style and scripts are served by this server", "[serve]") {
  const auto html = serve::framed({.title = "a", .scripts = {"/curves.js"}}, "");
  CHECK(says(html, "<script src=\"/script.js\"></script>\n<script src=\"/curves.js\"></script>"));
  CHECK(serve::style_response().content_type == "text/css; charset=utf-8");
  CHECK(serve::common_script_response().content_type == "text/javascript; charset=utf-8");
}
