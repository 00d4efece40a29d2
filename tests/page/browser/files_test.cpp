#include "page/browser/files.h"

#include <regex>
#include <string>

#include "support/catch.h"

TEST_CASE("style and script of served pages take nothing from elsewhere and write no markup",
          "[page]") {
  const std::regex outside(
      "https?:|url\\(|@import|innerHTML\\s*=|insertAdjacentHTML|document\\.write|eval\\(");
  CHECK_FALSE(std::regex_search(std::string(olmo::page::site_css()), outside));
  CHECK_FALSE(std::regex_search(std::string(olmo::page::site_js()), outside));
}
