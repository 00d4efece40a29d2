#include "serve/compare.h"

#include "serve/client.h"
#include "serve/served_runs.h"
#include "support/browser.h"
#include "support/catch.h"

namespace olmo::serve {
namespace {

struct Compared {
  Compared()
      : a(folder / "a", "first", 1, R"({"seed": 1, "optimizer": {"learning_rate": 0.001}})"),
        b(folder / "b", "<b>second</b>", 1,
          R"({"seed": 1, "optimizer": {"learning_rate": 2e-3}, "run_name": "<i>x</i>"})"),
        site({folder.path()}) {}

  Response page() {
    return site.answer(
        {.path = "/compare",
         .query = {{"run", {test::key_of(site, a.id()), test::key_of(site, b.id())}}},
         .parts = {}});
  }

  test::TemporaryDirectory folder;
  test::ServedRun a, b;
  test::KnownSite site;
};

std::string between(const std::string& text, const std::string& from, const std::string& to) {
  const auto begin = text.find(from), end = text.find(to, begin);
  return begin == std::string::npos ? "" : text.substr(begin, end - begin);
}

}  // namespace

TEST_CASE("keys of configs that differ stand above those that are equal", "[serve]") {
  Compared compared;
  const Response page = compared.page();
  REQUIRE(page.status == 200);
  const auto differing = between(page.body, "id=\"differ\"", "</section>");
  CHECK(differing.find("optimizer.learning_rate") != std::string::npos);
  CHECK(differing.find("<b>0.002</b>") != std::string::npos);
  CHECK(differing.find(">seed<") == std::string::npos);
  const auto equal = between(page.body, "id=\"equal\"", "</section>");
  CHECK(equal.find(">seed<") != std::string::npos);
  CHECK(equal.find("model.d_model") != std::string::npos);  // the default of both
}

TEST_CASE("names and values of configs are text on the page that compares them", "[serve]") {
  Compared compared;
  const Response page = compared.page();
  CHECK(page.body.find("<i>x</i>") == std::string::npos);
  CHECK(page.body.find("&lt;i&gt;x&lt;/i&gt;") != std::string::npos);
  CHECK(page.body.find("<b>second</b>") == std::string::npos);
}

TEST_CASE("a config that is damaged is told, and the others are shown", "[serve]") {
  const test::TemporaryDirectory folder;
  const test::ServedRun a(folder / "a", "first", 1, R"({"seed": 1})");
  test::ServedRun b(folder / "b", "second", 1);
  b.db().records().connection().execute(
      "PRAGMA ignore_check_constraints = ON; UPDATE runs SET config = '{'");
  test::KnownSite site({folder.path()});
  const Response page =
      site.answer({.path = "/compare",
                   .query = {{"run", {test::key_of(site, a.id()), test::key_of(site, b.id())}}},
                   .parts = {}});
  CHECK(page.status == 200);
  CHECK(page.body.find("second: its config: is no JSON object") != std::string::npos);
}

TEST_CASE("configs side by side fit a phone", "[serve][browser]") {
  if (!test::Browser::is_installed()) return;
  Compared compared;
  test::RunningServer server([&](const Request& request) { return compared.site.answer(request); });
  test::Browser browser;
  browser.resize(390, 800);
  browser.open(server.url() + "/compare?run=" + test::key_of(compared.site, compared.a.id()) +
               "&run=" + test::key_of(compared.site, compared.b.id()));
  CHECK(browser.number("document.documentElement.scrollWidth") <= 390);
  browser.click("#equal summary");
  CHECK(browser.holds("document.querySelector('#equal details').open"));
  CHECK(browser.problems().empty());
}

}  // namespace olmo::serve
