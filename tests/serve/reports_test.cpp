// The pages of reports, as the site answers them.
#include "site_pages.h"

#include "store/run_fixture.h"
#include "support/catch.h"
#include "support/happens.h"
#include "support/says.h"

namespace serve = olmo::serve;
using namespace olmo::test;

namespace {

/// The page once it is made: it may be computed for a while.
serve::Response made(const serve::Site& site, const std::string& target) {
  serve::Response page;
  CHECK(happens([&] {
    page = answer(site, target);
    return !says(page.body, "This is being computed");
  }));
  return page;
}

}  // namespace

TEST_CASE("two runs have the page of report parity, whose script alone may run", "[serve]") {
  RecordedCurve a, b;
  a.steps(1, 5);
  b.steps(1, 5, 20);
  KnownSite site({a.path(), b.path()});
  const auto page = made(
      site, "/parity?a=" + key_of(site, a.id()) + "&b=" + key_of(site, b.id()) + "&kind=outcome");
  CHECK(page.status == 200);
  CHECK(says(page.body, "Make this page again"));
  CHECK(says(page.body, "--kind outcome"));
  CHECK(says(page.content_policy, "script-src 'sha256-"));
  CHECK_FALSE(says(page.content_policy, "script-src 'unsafe-inline'"));
}

TEST_CASE("ticked runs are compared in their order", "[serve]") {
  RecordedCurve a, b;
  a.steps(1, 5);
  b.steps(1, 5);
  KnownSite site({a.path(), b.path()});
  const auto key_a = key_of(site, a.id()), key_b = key_of(site, b.id());
  CHECK(made(site, "/parity?run=" + key_a + "&run=" + key_b).status == 200);
  for (const std::string& query :
       {std::string(), "?a=" + key_a, "?run=" + key_a,
        "?run=" + key_a + "&run=" + key_b + "&run=" + key_a, "?a=" + key_a + "&b=nothing"}) {
    INFO(query);
    CHECK(made(site, "/parity" + query).status == 404);
  }
}

TEST_CASE("a kind or margin that there is not is one sentence", "[serve]") {
  RecordedCurve a;
  KnownSite site({a.path()});
  const auto key = key_of(site, a.id());
  for (const std::string what : {"&kind=%3Cb%3E", "&margin=%3Cb%3E=1", "&margin=loss=x"}) {
    INFO(what);
    const auto page = made(site, "/parity?a=" + key + "&b=" + key + what);
    CHECK(page.status == 422);
    CHECK_FALSE(says(page.body, "<b>"));
  }
}

TEST_CASE("skipped evaluations and assumptions are the command's options in the address",
          "[serve]") {
  RecordedCurve a, b;
  a.steps(1, 5);
  b.steps(1, 5, 20);
  KnownSite site({a.path(), b.path()});
  const std::string pair =
      "/parity?a=" + key_of(site, a.id()) + "&b=" + key_of(site, b.id()) + "&kind=outcome";
  const auto page =
      made(site, pair + "&skip-evaluations=1&assume=tokenizer%3Dequal&assume=config%3Dequal");
  CHECK(page.status == 200);
  CHECK(says(page.body, "--skip-evaluations --assume tokenizer=equal --assume config=equal"));
  CHECK(says(page.body, "assumed: <code>equal</code>"));
  CHECK_FALSE(says(made(site, pair).body, "assumed: "));
  for (const std::string wrong : {"&assume=tokenizer", "&skip-evaluations=perhaps"}) {
    INFO(wrong);
    CHECK(made(site, pair + wrong).status == 422);
  }
}

TEST_CASE("a run has the page of report run", "[serve]") {
  RecordedCurve run;
  run.steps(1, 5);
  run.sql("UPDATE runs SET name = '<script>alert(1)</script>'");
  KnownSite site({run.path()});
  const auto page = made(site, "/report?run=" + key_of(site, run.id()));
  CHECK(page.status == 200);
  CHECK(says(page.body, "5 steps"));
  CHECK_FALSE(says(page.body, "<script>alert"));
}
