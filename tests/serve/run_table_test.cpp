// The first page, as the site answers it.
#include <nlohmann/json.hpp>

#include "serve/client.h"
#include "serve/site_pages.h"
#include "store/run_fixture.h"
#include "support/browser.h"
#include "support/catch.h"
#include "support/says.h"

namespace fs = std::filesystem;
namespace serve = olmo::serve;
using olmo::test::says;
using olmo::test::RecordedCurve;

namespace {

struct ThreeRuns {
  ThreeRuns() {
    named(fast, "fast", "2026-01-01T10:00:00.000Z");
    named(slow, "slow", "2026-01-02T10:00:00.000Z");
    named(empty, "empty", "2026-01-03T10:00:00.000Z");
    fast.steps(1, 4);
    slow.steps(1, 2);
    slow.db().tag(slow.id(), "keep", false);
    slow.db().end_attempt("finished");
  }

  static void named(RecordedCurve& run, const std::string& name, const std::string& created) {
    run.sql("UPDATE runs SET name = '" + name + "', created_utc = '" + created + "'");
  }
  [[nodiscard]] std::vector<fs::path> places() const {
    return {fast.path(), slow.path(), empty.path()};
  }

  RecordedCurve fast, slow, empty;
};

std::string page(const serve::Site& site, const std::string& target) {
  const auto response = site.answer(*serve::parse_target(target));
  CHECK(response.status == 200);
  return response.body;
}

/// The names of the table's rows, in their order.
std::string names(const serve::Site& site, const std::string& target) {
  const std::string html = page(site, target);
  const std::string mark = "<th scope=\"row\"><a href=\"";
  std::string found;
  for (auto at = html.find(mark); at != std::string::npos; at = html.find(mark, at + 1)) {
    const auto begin = html.find('>', at + mark.size()) + 1;
    found += " " + html.substr(begin, html.find('<', begin) - begin);
  }
  return found;
}

}  // namespace

TEST_CASE("the table is in the order of the address, and what has no value comes last", "[serve]") {
  const ThreeRuns runs;
  const olmo::test::KnownSite site(runs.places());
  CHECK(names(site, "/") == " empty slow fast");
  CHECK(names(site, "/?sort=created") == " fast slow empty");
  CHECK(names(site, "/?sort=name") == " empty fast slow");
  CHECK(names(site, "/?sort=loss") == " fast slow empty");
  CHECK(names(site, "/?sort=-loss") == " slow fast empty");
  CHECK(names(site, "/?sort=%3Cnonsense") == " empty slow fast");
}

TEST_CASE("the address filters by words, state and tag", "[serve]") {
  const ThreeRuns runs;
  const olmo::test::KnownSite site(runs.places());
  // Ids and folders, which are searched as well, are drawn at random: no short words.
  CHECK(names(site, "/?q=FAST") == " fast");
  CHECK(names(site, "/?q=running") == " empty fast");
  CHECK(names(site, "/?q=running+fast") == " fast");
  CHECK(names(site, "/?status=finished") == " slow");
  CHECK(names(site, "/?tag=keep") == " slow");
  CHECK(names(site, "/?q=nothing").empty());
  CHECK(says(page(site, "/?q=fast"), "1 of 3 runs in 3 databases"));
}

TEST_CASE("the address chooses columns, and the table's links keep what it says", "[serve]") {
  const ThreeRuns runs;
  const olmo::test::KnownSite site(runs.places());
  const auto html = page(site, "/?column=loss&column=id&q=a");
  CHECK(says(html, "data-h=\"Loss\""));
  CHECK(says(html, "data-h=\"Run id\""));
  CHECK_FALSE(says(html, "data-h=\"Status\""));
  CHECK(says(html, "href=\"/?column=loss&amp;column=id&amp;q=a&amp;sort=-loss\""));
}

TEST_CASE("ticked runs stay ticked", "[serve]") {
  const ThreeRuns runs;
  olmo::test::KnownSite site(runs.places());
  const auto key = site.catalog().listing()->runs.at(1).key;
  const auto html = page(site, "/?run=" + key);
  CHECK(says(html, "value=\"" + key + "\" aria-label=\"Choose slow\" checked>"));
}

TEST_CASE("names, tags and hosts of runs are text in the table", "[serve]") {
  RecordedCurve run;
  run.sql("UPDATE runs SET name = '<script>alert(1)</script>\"''&' || char(0x202e) || 'x'");
  run.sql("UPDATE attempts SET environment = '{\"host\": \"<img src=x onerror=alert(1)>\"}'");
  run.db().tag(run.id(), "<b>", false);
  const olmo::test::KnownSite site({run.path()});
  for (const std::string target : {"/", "/?q=%3Cscript%3E", "/?tag=%3Cb%3E", "/?sort=%22%3E%3Cb%3E",
                                   "/?column=host&x=%22%3E%3Cscript%3E&run=%22%3E%3Cb%3E"}) {
    INFO(target);
    const auto html = page(site, target);
    CHECK_FALSE(says(html, "<script>"));
    CHECK_FALSE(says(html, "<img"));
    CHECK_FALSE(says(html, "<b>"));
    CHECK_FALSE(says(html, "\u202e"));
  }
}

TEST_CASE("a name of 100,000 letters is cut", "[serve]") {
  RecordedCurve run;
  run.sql("UPDATE runs SET name = '" + std::string(100'000, 'x') + "'");
  const olmo::test::KnownSite site({run.path()});
  CHECK(page(site, "/").size() < 20'000);
}

TEST_CASE("programs get the runs as JSON", "[serve]") {
  const ThreeRuns runs;
  const olmo::test::KnownSite site(runs.places());
  const auto response = site.answer(*serve::parse_target("/api/runs"));
  CHECK(response.content_type == "application/json");
  const auto json = nlohmann::json::parse(response.body);
  REQUIRE(json["runs"].size() == 3);
  CHECK(json["runs"][1]["name"] == "slow");
  CHECK(json["runs"][1]["step"] == 2);
  CHECK(json["runs"][0]["step"].is_null());
  CHECK(json["unreadable"].empty());
}

TEST_CASE("damaged records are marked in the table, on their pages and for programs", "[serve]") {
  RecordedCurve run;
  run.steps(1, 2);
  const olmo::test::KnownSite site({run.path()});
  const auto of_run = [&] {
    return nlohmann::json::parse(page(site, "/api/runs")).at("runs").at(0);
  };
  CHECK(olmo::test::happens([&] { return of_run().at("record") == "damaged"; }));
  const auto json = of_run();
  const std::string table = page(site, "/");
  CHECK(says(table, ">damaged</span>"));
  CHECK(says(table, "damaged: the record contradicts itself"));
  const std::string own = "/run/" + std::string(json.at("key"));
  const std::string overview = page(site, own);
  CHECK(says(overview, ">damaged</span>"));
  CHECK(says(overview, std::string(json.at("record_reason")).substr(0, 10)));
  CHECK(says(page(site, own + "/curves"), ">damaged</span>"));
}

TEST_CASE("a reader filters the table, ticks runs that stay ticked, and compares them",
          "[serve][browser]") {
  if (!olmo::test::Browser::is_installed()) return;
  ThreeRuns runs;
  const olmo::test::KnownSite site(runs.places());
  olmo::test::RunningServer server(
      [&](const serve::Request& request) { return site.answer(request); });
  olmo::test::Browser browser;
  browser.open(server.url() + "/");
  const std::string rows = "document.querySelectorAll('.every tbody tr').length";
  CHECK(browser.number(rows) == 3);
  CHECK(browser.holds("document.querySelector('[formaction=\"/parity\"]').disabled"));

  browser.click(".every tbody tr:nth-child(2) [name=run]");
  browser.click("[name=q]");
  browser.type("fast");
  CHECK(browser.becomes(rows + " === 1"));
  CHECK(browser.holds("location.search.includes('q=fast')"));
  browser.click(".every tbody tr:nth-child(1) [name=run]");
  CHECK(browser.holds("!document.querySelector('[formaction=\"/parity\"]').disabled"));

  runs.fast.steps(5, 6);
  CHECK(browser.becomes("document.querySelector('[data-h=Step]').textContent.startsWith('6 ')"));
  CHECK(browser.number("document.querySelectorAll('[name=run]:checked').length") == 1);
  CHECK(browser.problems().empty());
  browser.click("[formaction='/parity']");
  CHECK(browser.becomes("location.pathname === '/parity'"));
  CHECK(browser.holds("location.search.match(/run=/g).length === 2"));
  CHECK(browser.holds("!location.search.includes('q=')"));
}
