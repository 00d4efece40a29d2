// Whether people can read the pages: in both colour schemes, at a phone's width, with a screen
// reader, on paper.
#include "serve/client.h"
#include "serve/evaluated_run.h"
#include "support/browser.h"
#include "support/catch.h"

namespace olmo::serve {
namespace {

/// What keeps the page that is shown from being read; empty: nothing does. Contrast is that of
/// WCAG 2.1: 4.5, of large text 3. What cannot be pressed now need not have it.
constexpr char kFindings[] = R"js((() => {
  const found = new Set(), parts = s => s.match(/[\d.]+/g).map(Number);
  const light = c => { const [r, g, b] = c.map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
  const over = (c, below) => below.map((v, i) => v * (1 - (c[3] ?? 1)) + c[i] * (c[3] ?? 1));
  const behind = e => { const layers = []; for (; e; e = e.parentElement) layers.unshift(parts(getComputedStyle(e).backgroundColor));
    return layers.reduce((below, c) => over(c, below), [255, 255, 255]); };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode.textContent.trim(), e = texts.currentNode.parentElement, style = getComputedStyle(e);
    if (!text || e.closest('script, style, noscript, option, :disabled') || !e.checkVisibility()) continue;
    const ground = behind(e), a = light(over(parts(style.color), ground)), b = light(ground), size = parseFloat(style.fontSize);
    const contrast = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (contrast < (size >= 24 ? 3 : 4.5)) found.add('contrast ' + contrast.toFixed(2) + ': ' + text.slice(0, 40));
  }
  let level = 0;
  for (const h of document.querySelectorAll('h1, h2, h3, h4')) { if (+h.tagName[1] > level + 1) found.add('heading after a gap: ' + h.textContent); level = +h.tagName[1]; }
  if (document.documentElement.scrollWidth > innerWidth + 1) found.add('wider than the window');
  for (const e of document.querySelectorAll('a, button, input:not([type=hidden]), select, summary, svg[role=img]'))
    if (!(e.getAttribute('aria-label') || e.title || e.textContent.trim() || [...e.labels || []].some(l => l.textContent.trim()))) found.add('no name: ' + e.outerHTML.slice(0, 60));
  for (const e of document.querySelectorAll('[id]')) if (document.querySelectorAll('#' + CSS.escape(e.id)).length > 1) found.add('twice: #' + e.id);
  return [...found].join('\n');
})())js";

/// Two runs with evaluations, one that diverged in its only step, and one without any.
struct Readable {
  Readable() {
    for (const std::int64_t step : {5, 10}) {
      test::evaluate(a, step, [](auto) { return 0; });
      test::evaluate(b, step, [](auto) { return 1; });
    }
    diverged.db().event(2, "error", std::string(300, 'e'));
    diverged.end("diverged");
    const std::string both = "?run=" + key(a) + "&run=" + key(b);
    for (const auto& run : {key(a), key(diverged), key(none)})
      for (const char* part : {"", "/curves", "/evaluations", "/config", "/checkpoints", "/events",
                               "/energy", "/record"})
        pages.push_back("run/" + run + part);
    for (const char* page : {"curves", "compare", "evaluations", "parity"})
      pages.push_back(page + both);
  }
  std::string key(const test::ServedRun& run) { return test::key_of(site, run.id()); }
  void open(const std::string& page) { browser.open(server.url() + "/" + page); }

  test::DataCache cache;
  test::TemporaryDirectory folder;
  test::ServedRun a{folder / "a", "first", 20},
      b{folder / "b", "a name that is rather long and has no_place_where_it_could_be_broken_at",
        20},
      diverged{folder / "c", "diverged", 1}, none{folder / "d", "none", 0};
  test::KnownSite site{{folder.path()}};
  test::RunningServer server{[this](const Request& request) { return site.answer(request); }};
  std::vector<std::string> pages = {"", "?q=nothing", "run/absent"};
  test::Browser browser;
};

}  // namespace

TEST_CASE("pages can be read in both colour schemes, by a screen reader and on a phone",
          "[serve][browser]") {
  if (!test::Browser::is_installed()) return;
  Readable readable;
  for (const bool dark : {false, true}) {
    readable.browser.prefer_dark(dark);
    for (const int width : {1280, 360}) {
      readable.browser.resize(width, 800);
      for (const auto& page : readable.pages) {
        readable.open(page);
        INFO("/" << page << ", " << width << " wide" << (dark ? ", dark" : ""));
        CHECK(readable.browser.text(kFindings).empty());
      }
    }
  }
}

TEST_CASE("on paper colours are those for white, and what cannot be pressed there is left out",
          "[serve][browser]") {
  if (!test::Browser::is_installed()) return;
  Readable readable;
  const std::string colours =
      "['--bg', '--r0', '--r5', '--r6', '--band'].map(name => "
      "getComputedStyle(document.documentElement).getPropertyValue(name)).join()";
  readable.open(readable.pages.back().replace(0, 6, "curves"));
  const std::string light = readable.browser.text(colours);
  readable.browser.prefer_dark(true);
  CHECK(readable.browser.text(colours) != light);
  readable.browser.on_paper(true);
  CHECK(readable.browser.text(colours) == light);
  for (const char* part : {".controls", ".tabs", ".run input", ".tools"}) {
    INFO(part);
    CHECK(readable.browser.holds("document.querySelector('" + std::string(part) +
                                 "').checkVisibility() === false"));
  }
  CHECK(readable.browser.holds("document.querySelector('.runs').checkVisibility()"));
}

TEST_CASE("the point of a run of one step is seen", "[serve][browser]") {
  if (!test::Browser::is_installed()) return;
  Readable readable;
  const std::string width = "charts[0].curves[0].line.getBBox().width > 0";
  readable.browser.run_scripts(false);
  readable.open("run/" + readable.key(readable.diverged) + "/curves");
  CHECK(readable.browser.holds(
      "document.querySelector('[data-source=ce_loss] g path').getBBox().width > 0"));
  readable.browser.run_scripts(true);
  readable.open("run/" + readable.key(readable.diverged) + "/curves");
  CHECK(
      readable.browser.becomes("document.getElementById('curves').dataset.loaded === 'all' && "
                               "charts[0].old === false && " +
                               width));
}

}  // namespace olmo::serve
