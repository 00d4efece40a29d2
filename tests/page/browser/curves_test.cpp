#include <limits>

#include "serve/client.h"
#include "serve/served_runs.h"
#include "support/browser.h"
#include "support/catch.h"

// The script is tested on the pages of serve/curves.h, which it is made for.
namespace olmo::page {
namespace {

using serve::Request;
using test::Browser;

/// Two runs that go on, of 300 and 200 steps, and a browser on their curves.
struct Looked {
  explicit Looked(const std::string& second = "second", const std::string& more = "")
      : a(folder / "a", "first", 300), b(folder / "b", second, 200) {
    address = server.url() + "/curves?run=" + key(a) + "&run=" + key(b) + more;
  }
  std::string key(const test::ServedRun& run) { return test::key_of(site, run.id()); }
  /// Returns when the first chart is drawn from what the server sent of all runs.
  void open() {
    browser.open(address);
    REQUIRE(browser.becomes(
        "document.getElementById('curves').dataset.loaded === 'all' && charts[0].old === false"));
  }
  /// An expression: x of the last point of a run's loss, as its chart holds it.
  static std::string last_of(int run) {
    return "charts[0].curves[" + std::to_string(run) + "].points.at(-1).base";
  }

  test::TemporaryDirectory folder;
  test::ServedRun a, b;
  test::KnownSite site{{folder.path()}};
  test::RunningServer server{[this](const Request& request) { return site.answer(request); }};
  std::string address;
  Browser browser;
};

}  // namespace

TEST_CASE("new steps are drawn while a training writes them, and no more is asked once it ended",
          "[page][browser]") {
  if (!Browser::is_installed()) return;
  Looked looked;
  looked.open();
  CHECK(looked.browser.text(Looked::last_of(0)) == "300");
  looked.a.train(301, 320);
  CHECK(looked.browser.becomes(Looked::last_of(0) + " === 320"));
  CHECK(looked.browser.becomes(
      "document.querySelector('.state').textContent === 'running, step 320'"));
  looked.a.end();
  looked.b.end();
  CHECK(looked.browser.becomes("document.getElementById('curves').dataset.live === 'off'"));
  CHECK(looked.browser.text("document.querySelector('.state').textContent") == "step 320");
  CHECK(looked.browser.problems().empty());
}

TEST_CASE("steps whose loss is not finite are marked, those that come and those that were there",
          "[page][browser]") {
  if (!Browser::is_installed()) return;
  Looked looked;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  looked.a.train(301, 302, kInfinity);
  looked.open();
  const std::string marks = "charts[0].curves[0].marks.map(p => p.base).join()";
  CHECK(looked.browser.becomes(marks + " === '301,302'"));
  CHECK(looked.browser.text("charts[0].curves[0].marked.textContent") ==
        "first: the loss is not finite");
  looked.a.train(303, 303, kInfinity);
  CHECK(looked.browser.becomes(marks + " === '301,302,303'"));
  CHECK(looked.browser.holds("charts[0].curves[1].marks.length === 0"));
  CHECK(looked.browser.problems().empty());
}

TEST_CASE("a database that vanishes is told in a sentence, and its curve stays",
          "[page][browser]") {
  if (!Browser::is_installed()) return;
  Looked looked;
  looked.open();
  std::filesystem::remove_all(looked.folder / "b");
  CHECK(looked.browser.becomes(
      "document.getElementById('notice').textContent.startsWith('second: ')"));
  CHECK(looked.browser.text(Looked::last_of(1)) == "200");
  looked.a.train(301, 305);
  CHECK(looked.browser.becomes(Looked::last_of(0) + " === 305"));
}

TEST_CASE("zooming brings single steps in place of bins, and is kept in the address",
          "[page][browser]") {
  if (!Browser::is_installed()) return;
  Looked looked;
  looked.a.train(301, 5000);
  looked.open();
  const std::string middle =
      "charts[0].curves[0].points.filter(p => p.base > 2000 && p.base < 2500).length";
  const double before = looked.browser.number(middle);
  looked.browser.drag("[data-source=ce_loss] svg", 0.4, 0.5);
  CHECK(looked.browser.becomes(middle + " > 400"));
  CHECK(before < 200);
  CHECK(looked.browser.holds("location.search.includes('from=')"));
  looked.browser.open(looked.browser.text("location.href"));
  CHECK(looked.browser.becomes("charts[1].view.zoom[0] > 1900 && " + middle + " > 400"));
  looked.browser.click("[data-source=ce_loss] .tools button:last-child");
  CHECK(looked.browser.becomes("!location.search.includes('from=')"));
  CHECK(looked.browser.problems().empty());
}

TEST_CASE("a run is hidden and shown by its box", "[page][browser]") {
  if (!Browser::is_installed()) return;
  Looked looked;
  looked.open();
  looked.browser.click(".run:nth-child(2) input");
  CHECK(looked.browser.becomes("charts[0].curves[1].g.style.display === 'none'"));
  CHECK(looked.browser.holds("location.search.includes('hide=')"));
  looked.browser.click(".run:nth-child(2) input");
  CHECK(looked.browser.becomes("charts[0].curves[1].g.style.display === ''"));
}

TEST_CASE("smoothing takes the mean over its window and leaves the raw band", "[page][browser]") {
  if (!Browser::is_installed()) return;
  Looked looked;
  for (int i = 301; i <= 1000; ++i) looked.a.train(i, i, i % 2 == 0 ? 1 * i : 3 * i);
  looked.open();
  looked.browser.text(
      "document.querySelector('[name=smooth]').value = '10', "
      "document.querySelector('[name=smooth]').dispatchEvent(new Event('change', "
      "{bubbles: true}))");
  const std::string point = "charts[0].curves[0].points.find(p => p.base >= 700)";
  CHECK(looked.browser.becomes("Math.abs(" + point + ".mean - 2) < 0.05"));
  CHECK(looked.browser.holds(point + ".low === 1 || " + point + ".high === 3"));
  CHECK(looked.browser.holds("charts[0].curves[0].g.querySelector('.area').getBBox().height > 0"));
}

TEST_CASE("curves are shown as their difference to a base run", "[page][browser]") {
  if (!Browser::is_installed()) return;
  Looked looked;
  looked.b.train(201, 300, 15);
  looked.address += "&base=" + looked.key(looked.a);
  looked.open();
  CHECK(looked.browser.becomes("charts[0].view.y.label === 'nats, less that of first'"));
  CHECK(
      looked.browser.becomes("Math.abs(charts[0].curves[1].points.at(-1).mean - 5 / 300) < 1e-6"));
  CHECK(looked.browser.becomes("charts[0].curves[0].points.every(p => p.mean === 0)"));
}

TEST_CASE("curves are drawn by tokens and by hours of training", "[page][browser]") {
  if (!Browser::is_installed()) return;
  Looked looked("second", "&x=tokens");
  looked.open();
  CHECK(looked.browser.becomes(Looked::last_of(0) + " === " + std::to_string(300 * 512)));
  looked.browser.text(
      "document.querySelector('[name=x]').value = 'time', "
      "document.querySelector('[name=x]').dispatchEvent(new Event('change', "
      "{bubbles: true}))");
  CHECK(looked.browser.becomes("Math.abs(" + Looked::last_of(0) + " - 150 / 3600) < 1e-9"));
  CHECK(looked.browser.text("document.querySelector('.xl').textContent") == "hours of training");
}

TEST_CASE("the readout has each run's value at the step under the pointer", "[page][browser]") {
  if (!Browser::is_installed()) return;
  Looked looked;
  looked.open();
  looked.browser.point_at("[data-source=ce_loss] svg", 0.5, 0.3);
  CHECK(looked.browser.text("document.querySelector('.readout b').textContent") == "step 150");
  CHECK(looked.browser.number("document.querySelectorAll('.readout .value').length") == 2);
}

TEST_CASE("the mark of the keyboard stays within the plot of a narrower window",
          "[page][browser]") {
  if (!Browser::is_installed()) return;
  Looked looked;
  looked.open();
  looked.browser.text("document.querySelector('[data-source=ce_loss] svg').focus()");
  looked.browser.press("ArrowRight");
  const std::string cursor = "document.querySelector('[data-source=ce_loss] .cursor')";
  REQUIRE(looked.browser.becomes("!" + cursor + ".hidden"));
  looked.browser.resize(390, 800);
  REQUIRE(looked.browser.becomes("document.documentElement.clientWidth === 390"));
  CHECK(looked.browser.holds("!" + cursor + ".hidden"));
  const std::string past = cursor +
                           ".getBoundingClientRect().right - document.querySelector('[data-source="
                           "ce_loss] svg').getBoundingClientRect().right";
  CHECK(looked.browser.number(past) < 2);
  CHECK(looked.browser.number("document.documentElement.scrollWidth") <= 390);
}

TEST_CASE("a run's name is text on the page of curves, whatever it holds", "[page][browser]") {
  if (!Browser::is_installed()) return;
  const std::string name =
      "</script><script>window.ran=1</script><img src=x onerror=window.ran=1>'\"\xE2\x80\xAE" +
      std::string(500, 'W');
  Looked looked(name);
  looked.open();
  looked.browser.point_at("[data-source=ce_loss] svg", 0.5, 0.3);
  CHECK(looked.browser.becomes("document.querySelector('.readout').textContent.includes('<img')"));
  CHECK(looked.browser.text("window.ran") == "undefined");
  CHECK(looked.browser.number("document.images.length") == 0);
  for (const int width : {390, 768, 1280}) {
    looked.browser.resize(width, 800);
    INFO(width);
    CHECK(looked.browser.becomes("innerWidth === " + std::to_string(width)));
    CHECK(looked.browser.number("document.documentElement.scrollWidth") <= width);
  }
  CHECK(looked.browser.problems().empty());
}

TEST_CASE("a server that ended is told in a sentence", "[page][browser]") {
  if (!Browser::is_installed()) return;
  const test::TemporaryDirectory folder;
  const test::ServedRun run(folder / "a", "alone", 20);
  test::KnownSite site({folder.path()});
  Browser browser;
  {
    test::RunningServer server([&](const Request& request) { return site.answer(request); });
    browser.open(server.url() + "/run/" + test::key_of(site, run.id()) + "/curves");
    REQUIRE(browser.becomes("document.getElementById('curves').dataset.live === 'on'"));
  }
  CHECK(
      browser.becomes("document.getElementById('notice').textContent === 'olmo-harness serve does "
                      "not answer; the curves are as they were.'"));
}

}  // namespace olmo::page
