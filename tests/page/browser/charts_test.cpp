#include <csignal>
#include <fstream>

#include "page/chart.h"
#include "page/html.h"
#include "support/browser.h"
#include "support/catch.h"
#include "support/happens.h"
#include "support/temporary_directory.h"

namespace olmo::page {
namespace {

/// A chart of 1,000 steps, 512 tokens each: a curve that falls from 2 to 1, with one spike.
std::string page_with_chart(const std::string& name = "A") {
  std::vector<Bin> bins;
  std::vector<Point> steps;
  for (int i = 1; i <= 1000; ++i) {
    const double x = 512.0 * i, y = 1 + 1.0 / i;
    bins.push_back({x, y - 0.01, y, i == 700 ? 5 : y + 0.01, false});
    steps.push_back({x, static_cast<double>(i)});
  }
  Axis x = axis_over(std::vector<double>{512, 512'000}, Axis::Scale::kLinear, "tokens", false);
  x.counts = true;
  Chart chart("Loss", "It falls.", x,
              axis_over(std::vector<double>{1, 5}, Axis::Scale::kLinear, "nats"));
  chart.curve(bins, {"a", name}, steps);
  return document("A chart", chart.html(), "{}");
}

std::string saved(const test::TemporaryDirectory& folder, const std::string& html) {
  std::ofstream(folder / "page.html") << html;
  return "file://" + (folder / "page.html").string();
}

const char* const kLine = "document.querySelector('g').lastElementChild.getAttribute('d')";

}  // namespace

TEST_CASE("a stretch of a chart is zoomed by dragging over it and left by a button",
          "[page][browser]") {
  if (!test::Browser::is_installed()) return;
  const test::TemporaryDirectory folder;
  test::Browser browser;
  browser.open(saved(folder, page_with_chart()));
  const std::string before = browser.text(kLine);
  browser.drag(".plot > svg", 0.4, 0.6);
  CHECK(browser.becomes("document.querySelector('.xl').textContent.includes('part of the run')"));
  CHECK(browser.text(kLine) != before);
  // 200 of 1,000 steps are seen, around the middle.
  CHECK(browser.text("[...document.querySelectorAll('.xs span')].map(s => s.textContent).join()") ==
        "250k,300k");
  browser.click(".tools button:last-child");
  CHECK(browser.text("document.querySelector('.xl').textContent") == "tokens");
  CHECK(browser.problems().empty());
}

TEST_CASE("the readout of a chart says what the curves have under the pointer", "[page][browser]") {
  if (!test::Browser::is_installed()) return;
  const test::TemporaryDirectory folder;
  test::Browser browser;
  browser.open(saved(folder, page_with_chart()));
  browser.point_at(".plot > svg", 0.7, 0.5);
  CHECK(browser.text("document.querySelector('.readout').textContent") ==
        "step 700, 358.4k tokens  ·  A 1.0014 nats (0.99143 to 5)");
  browser.point_at("figcaption", 0.1, 0.5);
  CHECK(browser.text("document.querySelector('.readout').textContent").empty());
}

TEST_CASE("a chart is read and left by keys", "[page][browser]") {
  if (!test::Browser::is_installed()) return;
  const test::TemporaryDirectory folder;
  test::Browser browser;
  browser.open(saved(folder, page_with_chart()));
  browser.text("document.querySelector('.plot > svg').focus()");
  browser.press("ArrowLeft");
  CHECK(browser.text("document.querySelector('.readout').textContent").starts_with("step 990, "));
  browser.drag(".plot > svg", 0.4, 0.6);
  browser.text("document.querySelector('.plot > svg').focus()");
  browser.press("Escape");
  CHECK(browser.text("document.querySelector('.xl').textContent") == "tokens");
}

TEST_CASE("a curve's name is text in the readout, whatever it holds", "[page][browser]") {
  if (!test::Browser::is_installed()) return;
  const test::TemporaryDirectory folder;
  test::Browser browser;
  const std::string name = "\"><img src=x onerror=\"window.ran=1\"></script><script>window.ran=1//";
  browser.open(saved(folder, page_with_chart(name)));
  browser.point_at(".plot > svg", 0.7, 0.5);
  CHECK(browser.text("document.querySelector('.readout').textContent").find("<img src=x") !=
        std::string::npos);
  CHECK(browser.text("window.ran") == "undefined");
}

TEST_CASE("without scripts a chart shows what its server drew", "[page][browser]") {
  if (!test::Browser::is_installed()) return;
  const test::TemporaryDirectory folder;
  test::Browser browser;
  browser.run_scripts(false);
  browser.open(saved(folder, page_with_chart()));
  browser.screenshot(folder / "page.png");
  CHECK(std::filesystem::file_size(folder / "page.png") > 5000);
  CHECK(browser.number("document.querySelectorAll('.tools').length") == 0);
  CHECK(browser.number("document.querySelector('g').getBoundingClientRect().height") > 100);
}

TEST_CASE("a browser ends with its test, and all its processes with it", "[page][browser]") {
  if (!test::Browser::is_installed()) return;
  int process = 0;
  const auto alive = [&] { return ::kill(-process, 0) == 0; };
  {
    const test::Browser browser;
    process = browser.process_id();
    CHECK(alive());
  }
  CHECK(test::happens([&] { return !alive(); }));
}

}  // namespace olmo::page
