#include "serve/lone_evaluations.h"

#include <nlohmann/json.hpp>

#include "serve/client.h"
#include "serve/evaluated_run.h"
#include "store/evaluations/evaluation_seal.h"
#include "support/browser.h"
#include "support/catch.h"

namespace olmo::serve {
namespace {

using test::says;

/// Two evaluations of one task in a database without runs, one always wrong and one always right.
struct WithoutRun {
  WithoutRun() {
    {
      test::ServedRun run(folder / "a", "first", 2);
      wrong = test::evaluate(run, 1, test::other_one);
      right = test::evaluate(run, 2, test::right_one);
      auto& records = run.db().records();
      records.connection().execute(
          "UPDATE evaluations SET run_id = NULL, checkpoint = '/models/OLMo-1B-<b>';"
          "DELETE FROM steps; DELETE FROM attempts; DELETE FROM runs;");
      // They are sealed as what they are now.
      for (const auto& id : {wrong, right})
        for (const auto& [task, seal] : store::compute_seals(records, id))
          records.connection().execute("UPDATE evaluation_seals SET sha256 = '" + seal +
                                       "' WHERE evaluation_id = '" + id + "' AND task = '" + task +
                                       "'");
    }
    site = std::make_unique<Site>(std::vector{folder.path()});
    static_cast<void>(site->catalog().listing(std::chrono::seconds(60)));
  }
  std::string key(const std::string& evaluation_id) {
    for (const auto& one : site->catalog().listing()->evaluations)
      if (one.entry.evaluation_id == evaluation_id) return one.key;
    return "none";
  }
  Response get(const std::string& path, Query query = {}) {
    return site->answer({.path = path, .query = std::move(query), .parts = {}});
  }

  test::DataCache cache;
  test::TemporaryDirectory folder;
  std::string wrong, right;
  std::unique_ptr<Site> site;
};

}  // namespace

TEST_CASE("evaluations of no run stand below the runs, with their scores", "[serve]") {
  WithoutRun without;
  const Response page = without.get("/");
  CHECK(says(page, "0 runs and 2 evaluations without one in 1 database"));
  CHECK(says(page, "Evaluations without a run"));
  CHECK(says(page, "OLMo-1B-&lt;b&gt;"));
  CHECK(says(page, "100.00 %"));
}

TEST_CASE("evaluations of a run are not listed beside it", "[serve]") {
  test::Evaluated evaluated;
  CHECK(!says(evaluated.site->answer({.path = "/"}), "Evaluations without a run"));
}

TEST_CASE("evaluations of no run are found by the words of the filter", "[serve]") {
  WithoutRun without;
  CHECK(says(without.get("/", {{"q", {"olmo-1b ARC_easy"}}}), "Evaluations without a run"));
  CHECK(!says(without.get("/", {{"q", {"another"}}}), "Evaluations without a run"));
}

TEST_CASE("an evaluation of no run has a page with its facts, scores and instances", "[serve]") {
  WithoutRun without;
  const Response page = without.get("/evaluation/" + without.key(without.right));
  REQUIRE(page.status == 200);
  CHECK(says(page, "<code>/models/OLMo-1B-&lt;b&gt;</code>"));
  CHECK(says(page, "<code>weights2</code>"));
  CHECK(says(page, "100.00"));
  CHECK(says(page, "/instances?evaluation="));
}

TEST_CASE("an evaluation that its record does not end is not said to run", "[serve]") {
  WithoutRun without;
  store::RunDb::open(without.folder / "a/run.db", store::OpenMode::kReadWrite)
      .records()
      .connection()
      .execute("UPDATE evaluations SET status = 'running'");
  without.site = std::make_unique<Site>(std::vector{without.folder.path()});
  static_cast<void>(without.site->catalog().listing(std::chrono::seconds(60)));
  const Response page = without.get("/evaluation/" + without.key(without.right));
  CHECK(says(page, "running by its record"));
}

TEST_CASE("two evaluations of no run show what was chosen differently", "[serve]") {
  WithoutRun without;
  const std::string a = without.key(without.right), b = without.key(without.wrong);
  CHECK(says(without.get("/evaluations", {{"run", {a, b}}}), "with_run=" + url_encoded(a)));
  const Response page =
      without.get("/instances", {{"run", {a}}, {"task", {"arc_easy"}}, {"with_run", {b}}});
  CHECK(page.status == 200);
  CHECK(says(page, "in A alone: "));
}

TEST_CASE("curves are not asked of an evaluation of no run", "[serve]") {
  WithoutRun without;
  const Response page = without.get("/curves", {{"run", {without.key(without.right)}}});
  CHECK(page.status == 404);
  CHECK(says(page, "belongs to no run"));
}

TEST_CASE("programs get evaluations of no run beside the runs", "[serve]") {
  WithoutRun without;
  const auto json = nlohmann::json::parse(without.get("/api/runs").body);
  REQUIRE(json.at("evaluations").size() == 2);
  CHECK(json["evaluations"][0]["scores"][0]["task"] == "arc_easy");
}

TEST_CASE("a reader ticks two evaluations and opens their flips", "[serve][browser]") {
  if (!test::Browser::is_installed()) return;
  WithoutRun without;
  test::RunningServer server([&](const Request& request) { return without.site->answer(request); });
  test::Browser browser;
  browser.open(server.url() + "/");
  browser.click("tbody tr:nth-child(1) [name=run]");
  browser.click("tbody tr:nth-child(2) [name=run]");
  browser.click("[formaction='/evaluations']");
  CHECK(browser.becomes(
      "document.querySelector('h1').textContent === 'Evaluations of 2 evaluations'"));
  browser.click("a[href*='with_run']");
  CHECK(browser.becomes("document.querySelector('[name=show]').value === 'flips'"));
  CHECK(browser.problems().empty());
}

}  // namespace olmo::serve
