#include "serve/instances.h"

#include "serve/client.h"
#include "serve/evaluated_run.h"
#include "support/browser.h"
#include "support/catch.h"

namespace olmo::serve {
using test::Evaluated;
using test::says;

TEST_CASE("instances are listed with what was asked and chosen", "[serve]") {
  Evaluated evaluated;
  const Response page = evaluated.get("/instances");
  REQUIRE(page.status == 200);
  CHECK(says(page, "0 of "));
  CHECK(says(page, "instances are right"));
  CHECK(says(page, "Question: "));
  CHECK(says(page, "✗"));
}

TEST_CASE("instances are filtered by whether they are right", "[serve]") {
  Evaluated evaluated;
  CHECK(says(evaluated.get("/instances", {{"show", {"right"}}}), "No instance is so."));
  CHECK(says(evaluated.get("/instances", {{"show", {"wrong"}}}), "✗"));
}

TEST_CASE("instances are found by a word of their text", "[serve]") {
  Evaluated evaluated;
  const auto task = eval::render_again(eval::load_catalog(), "arc_easy", "olmo", test::task_data());
  const auto& wanted = task.examples.back();
  const Response page =
      evaluated.get("/instances", {{"q", {wanted.options.back().continuation.substr(1)}}});
  CHECK(says(page, "doc=" + std::to_string(wanted.doc_id)));
  CHECK(says(evaluated.get("/instances", {{"q", {"no such word"}}}), "No instance is so."));
}

TEST_CASE("beside another evaluation the instances that flipped are listed", "[serve]") {
  Evaluated evaluated;
  const Response page = evaluated.get("/instances", evaluated.beside());
  CHECK(says(page, "in B alone: "));
  CHECK(says(page, "✓"));
  Query lost = evaluated.beside(), won = lost;
  lost["show"] = {"lost"};
  won["show"] = {"won"};
  CHECK(says(evaluated.get("/instances", lost), "✓"));
  CHECK(says(evaluated.get("/instances", won), "No instance is so."));
}

TEST_CASE("without the data set the record is shown and the texts are not", "[serve]") {
  Evaluated evaluated(false);
  const Response page = evaluated.get("/instances");
  CHECK(page.status == 200);
  CHECK(says(page, "The texts cannot be shown"));
  CHECK(says(page, "option "));
}

TEST_CASE("an evaluation that is not there is a page that says so", "[serve]") {
  Evaluated evaluated;
  Request request{.path = "/instances",
                  .query = {{"run", {evaluated.key}}, {"evaluation", {"<b>"}}, {"task", {"x"}}},
                  .parts = {}};
  const Response page = evaluated.site->answer(request);
  CHECK(page.status == 404);
  CHECK(says(page, "has no evaluation &lt;b&gt;"));
}

TEST_CASE("a task's name is text wherever it stands", "[serve][browser]") {
  if (!test::Browser::is_installed()) return;
  Evaluated evaluated(true, "<script>window.ran=1</script>'\"&task=x");
  test::RunningServer server(
      [&](const Request& request) { return evaluated.site->answer(request); });
  test::Browser browser;
  browser.open(server.url() + "/run/" + evaluated.key + "/evaluations");
  CHECK(browser.holds("document.body.textContent.includes('<script>window.ran=1')"));
  browser.click("td a");
  CHECK(browser.becomes("document.querySelector('h1').textContent.startsWith('<script>')"));
  browser.click("tbody th a");
  CHECK(browser.becomes("document.querySelector('h1').textContent.includes(', instance ')"));
  CHECK(browser.text("window.ran") == "undefined");
  CHECK(browser.problems().empty());
}

TEST_CASE("a reader filters instances and opens one", "[serve][browser]") {
  if (!test::Browser::is_installed()) return;
  Evaluated evaluated;
  test::RunningServer server(
      [&](const Request& request) { return evaluated.site->answer(request); });
  test::Browser browser;
  browser.resize(390, 800);
  browser.open(server.url() + "/instances?run=" + evaluated.key + "&evaluation=" + evaluated.wrong +
               "&task=arc_easy");
  browser.text("document.querySelector('[name=with]').value = '" + evaluated.right + "'");
  browser.click(".controls button");
  CHECK(browser.becomes("document.querySelector('[name=show]').value === 'flips'"));
  CHECK(browser.number("document.documentElement.scrollWidth") <= 390);
  browser.click("tbody th a");
  CHECK(browser.becomes("document.querySelector('pre.prompt') !== null"));
  CHECK(browser.number("document.documentElement.scrollWidth") <= 390);
  CHECK(browser.problems().empty());
}

}  // namespace olmo::serve
