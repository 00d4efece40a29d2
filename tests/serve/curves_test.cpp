#include "serve/curves.h"

#include "cli/training.h"
#include "serve/client.h"
#include "serve/frame.h"
#include "serve/served_runs.h"
#include "support/browser.h"
#include "support/catch.h"

namespace olmo::serve {

namespace fs = std::filesystem;

TEST_CASE("the page of curves is whole without a script", "[serve]") {
  const test::TemporaryDirectory folder;
  const test::ServedRun run(folder / "a", "alone", 50);
  test::KnownSite site({folder.path()});
  const auto page = site.answer({.path = "/run/" + test::key_of(site, run.id()) + "/curves"});
  CHECK(page.status == 200);
  for (const char* chart : {"ce_loss", "lr", "grad_norm", "tokens_per_second"})
    CHECK(page.body.find("data-source=\"" + std::string(chart) + "\"") != std::string::npos);
  CHECK(page.body.find("data-source=\"masked_instances\"") == std::string::npos);  // none was
}

TEST_CASE("the page of curves says which run cannot be read and shows the others", "[serve]") {
  const test::TemporaryDirectory folder;
  const test::ServedRun run(folder / "a", "alone", 5);
  test::KnownSite site({folder.path()});
  const auto page = site.answer(
      {.path = "/curves", .query = {{"run", {"gone~1", test::key_of(site, run.id())}}}});
  CHECK(page.body.find("There is no run gone~1") != std::string::npos);
  CHECK(page.body.find("data-source=\"ce_loss\"") != std::string::npos);
}

TEST_CASE("runs that there is no time to read are left to the page's script", "[serve][browser]") {
  if (!test::Browser::is_installed()) return;
  const test::TemporaryDirectory folder;
  const test::ServedRun first(folder / "a", "first", 5), second(folder / "b", "second", 5);
  test::KnownSite site({folder.path()});
  Routes routes;
  routes.add("/style.css", [](const auto&) { return style_response(); });
  routes.add("/script.js", [](const auto&) { return common_script_response(); });
  add_curves(routes, site.catalog(), std::chrono::milliseconds(-1));
  const Query runs = {{"run", {test::key_of(site, first.id()), test::key_of(site, second.id())}}};
  const auto page = routes.answer({.path = "/curves", .query = runs});
  CHECK(page.body.find("Reading takes long: 1 of 2 runs are drawn so far.") != std::string::npos);
  CHECK(page.body.find("data-name=\"second\"") == std::string::npos);

  test::RunningServer server([&](const Request& request) { return routes.answer(request); });
  test::Browser browser;
  browser.open(server.url() + address_of("/curves", runs));
  CHECK(
      browser.becomes("charts[0].curves.length === 2 && charts[0].curves[1].points.length === 5"));
  CHECK(browser.becomes("document.getElementById('notice').textContent === ''"));
}

TEST_CASE("a page of curves that was opened before the first step gets its charts",
          "[serve][browser]") {
  if (!test::Browser::is_installed()) return;
  const test::TemporaryDirectory folder;
  test::ServedRun run(folder / "a", "early", 0);
  test::KnownSite site({folder.path()});
  test::RunningServer server([&](const Request& request) { return site.answer(request); });
  test::Browser browser;
  browser.open(server.url() + "/run/" + test::key_of(site, run.id()) + "/curves");
  REQUIRE(browser.becomes("document.getElementById('curves').dataset.live === 'on'"));
  CHECK(browser.holds("charts.length === 0"));
  run.train(1, 5);
  CHECK(browser.becomes("charts.length > 0 && charts[0].curves[0].points.length === 5"));
  CHECK(browser.problems().empty());
}

TEST_CASE("a run that cannot be read when its page of curves comes is drawn once it can",
          "[serve][browser]") {
  if (!test::Browser::is_installed()) return;
  const test::TemporaryDirectory folder;
  test::ServedRun first(folder / "a", "first", 5), second(folder / "b", "second", 5);
  for (auto* run : {&first, &second}) run->end();
  test::KnownSite site({folder.path()});
  const Query runs = {{"run", {test::key_of(site, first.id()), test::key_of(site, second.id())}}};
  test::RunningServer server([&](const Request& request) { return site.answer(request); });
  test::Browser browser;
  fs::rename(folder / "b", folder / ".away");
  browser.open(server.url() + address_of("/curves", runs));
  REQUIRE(browser.becomes("document.getElementById('notice').textContent.startsWith('second: ')"));
  fs::rename(folder / ".away", folder / "b");
  CHECK(
      browser.becomes("charts[0].curves.length === 2 && charts[0].curves[1].points.length === 5"));
  CHECK(browser.becomes("document.getElementById('notice').textContent === ''"));
}

TEST_CASE("steps of a training are drawn while it writes them", "[serve][browser]") {
  if (!test::Browser::is_installed()) return;
  const test::Scene scene;
  test::Child training(scene.command("run", {"max_duration=10000000", "save_interval=10000000"}),
                       scene / "log");
  test::KnownSite site({scene / "run"});
  std::string key;
  REQUIRE(test::happens([&] {
    const auto listing = site.catalog().listing(std::chrono::seconds(10));
    if (!listing->runs.empty() && listing->runs[0].summary.step) key = listing->runs[0].key;
    return !key.empty();
  }));
  test::RunningServer server([&](const Request& request) { return site.answer(request); });
  test::Browser browser;
  browser.open(server.url() + "/run/" + key + "/curves");
  REQUIRE(browser.becomes("document.getElementById('curves').dataset.live === 'on'"));
  const std::string last = "charts[0].curves[0].points.at(-1).base";
  const double before = browser.number(last);
  CHECK(browser.becomes(last + " > " + std::to_string(before)));
  training.signal(SIGTERM);
  training.wait();
  CHECK(browser.becomes("document.getElementById('curves').dataset.live === 'off'"));
  CHECK(browser.problems().empty());
}

}  // namespace olmo::serve
