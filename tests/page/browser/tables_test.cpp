#include <fstream>

#include "page/html.h"
#include "support/browser.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace olmo::page {
namespace {

/// Runs 1 to 12 with their losses, the first of which is the largest.
std::string open_table(test::Browser& browser, const test::TemporaryDirectory& folder) {
  Table table({{"Run", false}, {"Loss", true}});
  for (int i = 1; i <= 12; ++i)
    table.row({escape("run " + std::to_string(i)), number(1000.0 / (i * i), 4)});
  std::ofstream(folder / "page.html") << document("Runs", table.html(), "{}");
  browser.open("file://" + (folder / "page.html").string());
  return "[...document.querySelectorAll('tbody tr')].filter(r => !r.hidden).map(r => "
         "r.cells[0].textContent.split(' ')[1]).join()";
}

}  // namespace

TEST_CASE("a click on the head of a column sorts a table by its numbers", "[page][browser]") {
  if (!test::Browser::is_installed()) return;
  const test::TemporaryDirectory folder;
  test::Browser browser;
  const std::string shown = open_table(browser, folder);
  browser.click("thead th:nth-child(2) button");
  CHECK(browser.text(shown) == "12,11,10,9,8,7,6,5,4,3,2,1");
  browser.click("thead th:nth-child(2) button");
  CHECK(browser.text(shown) == "1,2,3,4,5,6,7,8,9,10,11,12");
  CHECK(browser.text("document.querySelector('[aria-sort]').ariaSort") == "descending");
  CHECK(browser.problems().empty());
}

TEST_CASE("words in the filter leave the rows that have them all", "[page][browser]") {
  if (!test::Browser::is_installed()) return;
  const test::TemporaryDirectory folder;
  test::Browser browser;
  const std::string shown = open_table(browser, folder);
  browser.click(".filter");
  browser.type("RUN 1");
  CHECK(browser.text(shown) == "1,3,7,8,9,10,11,12");  // some have it in their losses
}

TEST_CASE("a column's name of two lines has room for both on a phone", "[page][browser]") {
  if (!test::Browser::is_installed()) return;
  const test::TemporaryDirectory folder;
  Table table({{"Run", false}, {"B − A, 90 % interval of the means", false}, {"Margin", false}});
  table.row({"run 1", "–", "–"});
  std::ofstream(folder / "page.html") << document("Runs", table.html(), "{}");
  test::Browser browser;
  browser.open("file://" + (folder / "page.html").string());
  browser.resize(390, 800);
  REQUIRE(browser.becomes("document.documentElement.clientWidth === 390"));
  const auto height = [&](int cell) {
    return browser.number("document.querySelectorAll('tbody tr > *')[" + std::to_string(cell) +
                          "].offsetHeight");
  };
  CHECK(height(1) >= 1.5 * height(2));
}

}  // namespace olmo::page
