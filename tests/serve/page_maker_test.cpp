#include "serve/page_maker.h"

#include <future>

#include "core/error.h"
#include "serve/site_pages.h"
#include "store/run_fixture.h"
#include "support/catch.h"

namespace serve = olmo::serve;
using olmo::test::header;

constexpr auto kPatience = std::chrono::seconds(60);

TEST_CASE("a page that takes long is a page that says so, until it is there", "[serve]") {
  std::promise<void> go;
  const std::shared_future<void> gone = go.get_future().share();
  serve::PageMaker maker;
  const auto make = [gone] {
    gone.wait();
    return serve::html_response("made");
  };
  const auto early = maker.page("a", "<b>A & B", {}, make, std::chrono::milliseconds(1));
  CHECK(early.status == 200);
  CHECK(header(early, "Refresh") == "2");
  CHECK(early.body.find("This is being computed") != std::string::npos);
  CHECK(early.body.find("&lt;b&gt;A &amp; B") != std::string::npos);
  go.set_value();
  CHECK(maker.page("a", "A", {}, make, kPatience).body == "made");
}

/// A page of a run that tells how often it was made.
struct CountedPage {
  explicit CountedPage(std::chrono::seconds stays_fresh) : maker(stays_fresh) {}
  std::string ask() {
    const auto make = [&] { return serve::html_response(std::to_string(++made)); };
    return maker.page("a", "A", {run.path()}, make, kPatience).body;
  }

  olmo::test::RecordedCurve run;
  int made = 0;
  serve::PageMaker maker;
};

TEST_CASE("a page is made once while its databases are as they were", "[serve]") {
  CountedPage page(std::chrono::seconds(0));
  CHECK(page.ask() == "1");
  CHECK(page.ask() == "1");
  page.run.steps(1, 1);
  CHECK(page.ask() == "2");
}

TEST_CASE("a page that is fresh is not made again, as a run that goes on changes every second",
          "[serve]") {
  CountedPage page(std::chrono::hours(24));
  CHECK(page.ask() == "1");
  page.run.steps(1, 1);
  CHECK(page.ask() == "1");
}

TEST_CASE("an error of making a page is told to who asked, and the next one tries again",
          "[serve]") {
  serve::PageMaker maker;
  const auto fail = []() -> serve::Response {
    throw olmo::Error(olmo::ErrorKind::kUsage, "report parity: no such kind");
  };
  CHECK_THROWS_WITH(maker.page("a", "A", {}, fail, kPatience), "report parity: no such kind");
  const auto make = [] { return serve::html_response("made"); };
  CHECK(maker.page("a", "A", {}, make, kPatience).body == "made");
}

TEST_CASE("many pages that wait are bounded", "[serve]") {
  std::promise<void> go;
  const std::shared_future<void> gone = go.get_future().share();
  serve::PageMaker maker;
  int refused = 0;
  for (int i = 0; i < 40; ++i) {
    const auto response = maker.page(
        std::to_string(i), "page", {},
        [gone] {
          gone.wait();
          return serve::html_response("made");
        },
        std::chrono::milliseconds(0));
    if (response.status == 503) ++refused;
  }
  CHECK(refused >= 30);
  go.set_value();
}
