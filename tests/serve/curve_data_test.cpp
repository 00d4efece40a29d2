#include "serve/curve_data.h"

#include <limits>

#include <nlohmann/json.hpp>

#include "serve/client.h"
#include "serve/served_runs.h"
#include "support/catch.h"

namespace olmo::serve {
namespace {

using Json = nlohmann::json;

/// A site of one run, asked through a socket as a page's script does.
struct Asked {
  explicit Asked(std::int64_t steps)
      : run(folder / "a", "a", steps),
        site({folder.path()}),
        server([this](const Request& request) { return site.answer(request); }),
        key(test::key_of(site, run.id())) {}

  Json get(const std::string& what) {
    const auto answer = test::ask(server.port(), what);
    CHECK(answer.status == 200);
    return Json::parse(answer.body);
  }

  test::TemporaryDirectory folder;
  test::ServedRun run;
  test::KnownSite site;
  test::RunningServer server;
  std::string key;
};

}  // namespace

TEST_CASE("a run's curves come in at most so many bins that hold every step", "[serve]") {
  Asked asked(1000);
  const Json all = asked.get("/api/curves?points=100&run=" + asked.key);
  CHECK(all["complete"] == true);
  CHECK(all["last"] == 1000);
  REQUIRE(all["step"].size() <= 100);
  CHECK(all["step"].size() > 40);
  std::int64_t rows = 0;
  for (const auto& count : all["rows"]) rows += count.get<std::int64_t>();
  CHECK(rows == 1000);
  CHECK(all["of"]["ce_loss"]["high"][0] == 10);
  CHECK(all["of"]["ce_loss"]["low"].back() == 0.01);
  CHECK(all["seconds"].back() == 500);
  CHECK_FALSE(all["of"].contains("z_loss"));  // none was recorded
}

TEST_CASE("a range of steps comes in finer bins than the whole run", "[serve]") {
  Asked asked(1000);
  const Json part = asked.get("/api/curves?points=100&from=501&to=550&run=" + asked.key);
  CHECK(part["step"].size() == 50);
  CHECK(part["step"].front() == 501);
  CHECK(part["of"]["ce_loss"]["mean"][0] == Approx(10.0 / 501));
}

TEST_CASE("only steps that came since are sent anew", "[serve]") {
  Asked asked(10);
  asked.run.train(11, 13);
  const Json news = asked.get("/api/curves/new?after=10&run=" + asked.key)["runs"][0];
  CHECK(news["step"] == Json({11, 12, 13}));
  CHECK(news["last"] == 13);
  CHECK(news["active"] == true);
  CHECK(news["tokens"] == Json({11 * 512, 12 * 512, 13 * 512}));
  CHECK(news["of"]["ce_loss"][2] == Approx(10.0 / 13));
}

TEST_CASE("bins tell how often the loss was not finite, and a curve that always was does not",
          "[serve]") {
  Asked asked(10);
  CHECK_FALSE(asked.get("/api/curves?run=" + asked.key)["of"]["ce_loss"].contains("not_finite"));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  asked.run.train(11, 12, kInfinity);
  asked.run.train(13, 13, -kInfinity);
  const Json of = asked.get("/api/curves?run=" + asked.key)["of"];
  std::int64_t marked = 0;
  for (const auto& count : of["ce_loss"]["not_finite"]) marked += count.get<std::int64_t>();
  CHECK(marked == 3);
  CHECK_FALSE(of["lr"].contains("not_finite"));
}

TEST_CASE("a page that has missed many steps is told so", "[serve]") {
  Asked asked(3000);
  const Json news = asked.get("/api/curves/new?after=5&run=" + asked.key)["runs"][0];
  CHECK(news["behind"] == true);
  CHECK(news["step"].empty());
}

TEST_CASE("the name of a run's line changes when steps are replaced by a later attempt",
          "[serve]") {
  Asked asked(20);
  const Json before = asked.get("/api/curves?run=" + asked.key);
  asked.run.train(21, 22);
  CHECK(asked.get("/api/curves?run=" + asked.key)["line"] == before["line"]);
  asked.run.resume(10);
  asked.run.train(11, 12, 20);
  const Json after = asked.get("/api/curves?run=" + asked.key);
  CHECK(after["line"] != before["line"]);
  CHECK(after["last"] == 12);
  CHECK(after["of"]["ce_loss"]["mean"].back() == Approx(20.0 / 12));
}

TEST_CASE("metrics come by their names with steps of their own", "[serve]") {
  Asked asked(20);
  asked.run.metric(10, "eval/<b>x</b>", 0.5);
  asked.run.metric(20, "eval/<b>x</b>", 0.25);
  const Json metrics = asked.get("/api/curves?of=metrics&run=" + asked.key)["of"];
  CHECK(metrics["eval/<b>x</b>"]["step"] == Json({10, 20}));
  CHECK(metrics["eval/<b>x</b>"]["mean"] == Json({0.5, 0.25}));
}

TEST_CASE("an address that asks for no number of points is refused with a sentence", "[serve]") {
  Asked asked(2);
  const auto answer = test::ask(asked.server.port(), "/api/curves?points=many&run=" + asked.key);
  CHECK(answer.status == 422);
  CHECK(Json::parse(answer.body)["error"] ==
        "the address: `points` expects a whole number, got `many`");
}

TEST_CASE("a run that is gone is told beside the others", "[serve]") {
  Asked asked(5);
  const test::ServedRun other(asked.folder / "b", "b", 3);
  const std::string other_key = test::key_of(asked.site, other.id());
  std::filesystem::remove_all(asked.folder / "b");
  const Json runs = asked.get("/api/curves/new?run=" + other_key + "&after=1&run=" + asked.key +
                              "&after=4")["runs"];
  CHECK(runs[0].contains("error"));
  CHECK(runs[1]["step"] == Json({5}));
}

TEST_CASE("of bins that are kept those that nobody asks for are let go", "[serve]") {
  CurveCache cache;
  constexpr std::size_t kHalf = CurveCache::kMostBins / 2;
  const auto first = cache.kept("first", 1000), second = cache.kept("second", kHalf - 1000);
  (void)cache.kept("third", kHalf);
  CHECK(cache.kept("first", 1000) == first);
  (void)cache.kept("one more", 1);
  CHECK(cache.kept("first", 1000) == first);
  CHECK(cache.kept("second", kHalf - 1000) != second);
  CHECK(cache.kept("far too much", 2 * CurveCache::kMostBins) != nullptr);
}

}  // namespace olmo::serve
